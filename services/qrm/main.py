"""Wiring of qrm: real cgroups, this substrate's pods, the topology of this host, the lease keeper."""

from services.qrm.app import NAME, QrmApp
from services.qrm.groups import Groups
from services.qrm.keeping import LeaseKeeping
from services.qrm.kubelet import exclusive_cpus
from services.qrm.machine import Machine, numa_memory_bytes
from services.qrm.offload import Offloader
from services.qrm.settings import QrmSettings
from services.qrm.writer import Writer
from shared import telemetry
from shared.adapters.cgroup import Cgroups
from shared.adapters.kubelet_tree import find_layout
from shared.adapters.pod_sources import pod_source
from shared.adapters.sysfs import offline_cpus, read_topology
from shared.app import App, Context, Plan
from shared.core.layout import OwnLayout
from shared.settings import section


def _count(file: str, result: str) -> None:
    telemetry.CGROUP_WRITES.labels(file, result).inc()


def build(context: Context) -> App:
    """qrm over the host root of the settings.

    Raises:
        BadConfig: a setting cannot be used.
        Unavailable: no cgroup hierarchy, or no topology.
    """
    common, settings = context.common, section(QrmSettings, context.raw, NAME)
    cgroups = Cgroups(common.host_root)
    root = common.host_root
    machine = Machine(
        cgroups,
        lambda: read_topology(root),
        lambda: numa_memory_bytes(root),
        lambda: exclusive_cpus(root),
        lambda: offline_cpus(root),
    )
    layout = find_layout(cgroups) if common.substrate == "kubernetes" else OwnLayout(settings.top_group)
    groups = Groups(Writer(cgroups, layout.top, _count), machine, layout)
    keeping = None
    if settings.keeper and common.substrate != "sim":
        keeping = LeaseKeeping(common.state_dir, common.host_root, layout.top)
    return QrmApp(context, machine=machine, groups=groups, pods=pod_source(common), keeping=keeping,
                  offloader=Offloader(cgroups))  # fmt: skip


PLAN = Plan(NAME, build)
