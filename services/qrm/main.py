"""Wiring of qrm: real cgroups, this substrate's pods, the topology of this host, the lease keeper."""

from services.qrm.app import NAME, QrmApp
from services.qrm.give_back import give_back
from services.qrm.groups import Groups
from services.qrm.keeping import LeaseKeeping
from services.qrm.kubelet import exclusive_cpus
from services.qrm.machine import Machine, numa_memory_bytes
from services.qrm.offload import Offloader
from services.qrm.settings import QrmSettings
from services.qrm.writer import Problem, Writer
from shared import telemetry
from shared.adapters.cgroup import Cgroups
from shared.adapters.kubelet_tree import find_layout
from shared.adapters.pod_sources import pod_source
from shared.adapters.sysfs import offline_cpus, read_topology
from shared.app import App, Context, Plan
from shared.core.layout import OwnLayout
from shared.settings import CommonSettings, section


def _count(file: str, result: str) -> None:
    telemetry.CGROUP_WRITES.labels(file, result).inc()


def leave(common: CommonSettings) -> tuple[Problem, ...]:
    """Give a node of a cluster back what qrm has taken, once no qrm runs there any more; what could not be written.

    Raises:
        Unavailable: no cgroup hierarchy, no topology, or no list of pods.
    """
    cgroups = Cgroups(common.host_root)
    layout = find_layout(cgroups)
    return give_back(Writer(cgroups, layout.top), layout, _machine(common, cgroups), pod_source(common).pods())


def _machine(common: CommonSettings, cgroups: Cgroups) -> Machine:
    root = common.host_root
    return Machine(
        cgroups,
        lambda: read_topology(root),
        lambda: numa_memory_bytes(root),
        lambda: exclusive_cpus(root),
        lambda: offline_cpus(root),
    )


def build(context: Context) -> App:
    """qrm over the host root of the settings.

    Raises:
        BadConfig: a setting cannot be used.
        Unavailable: no cgroup hierarchy, or no topology.
    """
    common, settings = context.common, section(QrmSettings, context.raw, NAME)
    cgroups = Cgroups(common.host_root)
    machine = _machine(common, cgroups)
    layout = find_layout(cgroups) if common.substrate == "kubernetes" else OwnLayout(settings.top_group)
    groups = Groups(Writer(cgroups, layout.top, _count), machine, layout)
    keeping = None
    if settings.keeper and common.substrate != "sim":
        keeping = LeaseKeeping(common.state_dir, common.host_root, layout.top)
    return QrmApp(context, machine=machine, groups=groups, pods=pod_source(common), keeping=keeping,
                  offloader=Offloader(cgroups))  # fmt: skip


PLAN = Plan(NAME, build)
