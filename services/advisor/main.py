"""`build` wires the advisor: samples from the bus, the machine's topology from its files."""

from services.advisor.app import AdvisorApp
from services.advisor.ports import AdvisorPorts
from services.advisor.settings import NAME, AdvisorSettings
from shared.adapters.host.sysfs import read_topology
from shared.app import App, Context, Plan
from shared.settings import section


def build(context: Context) -> App:
    """The advisor of this machine.

    Raises:
        BadConfig: a setting cannot be used.
        Unavailable: the topology cannot be read.
    """
    ports = AdvisorPorts(read_topology(context.common.host_root))
    return AdvisorApp(context, ports, section(AdvisorSettings, context.raw, NAME))


PLAN = Plan(NAME, build)
