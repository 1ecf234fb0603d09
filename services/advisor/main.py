"""Wiring of the advisor: samples from the bus, the machine's topology from its files."""

from services.advisor.app import AdvisorApp
from shared.adapters.host.sysfs import read_topology
from shared.app import App, Context, Plan


def build(context: Context) -> App:
    """The advisor of this machine."""
    return AdvisorApp(context.wire, context.clock, context.raw, read_topology(context.common.host_root))


PLAN = Plan("advisor", build)
