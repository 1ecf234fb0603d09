"""`build` wires the advisor: samples from the bus, topology and past from files, waits for CPUs from the kernel."""

from services.advisor.app import AdvisorApp
from services.advisor.learned_past import MAX_PAST_BYTES
from services.advisor.ports import AdvisorPorts
from services.advisor.settings import NAME, AdvisorSettings
from shared.adapters.files.past import PastFile
from shared.adapters.host.cpu_wait import waited_s
from shared.adapters.host.sysfs import read_topology
from shared.app import App, Context, Plan
from shared.settings import section


def build(context: Context) -> App:
    """The advisor of this machine.

    Raises:
        BadConfig: a setting cannot be used.
        Unavailable: the topology cannot be read.
    """
    past = PastFile(context.common.state_dir / "policy-past.json", MAX_PAST_BYTES)
    ports = AdvisorPorts(read_topology(context.common.host_root), past, waited_s)
    return AdvisorApp(context, ports, section(AdvisorSettings, context.raw, NAME))


PLAN = Plan(NAME, build)
