"""Wiring of qrm: real cgroups, this substrate's pods, the topology of this host, the lease keeper."""

from collections.abc import Callable, Mapping

from services.qrm.adapters.kernel.give_back import give_back
from services.qrm.adapters.kernel.groups import Groups
from services.qrm.adapters.kernel.kubelet import KernelPins, exclusive_cpus, sees_folder
from services.qrm.adapters.kernel.machine import Machine, numa_memory_bytes
from services.qrm.adapters.kernel.offloader import Offloader
from services.qrm.adapters.kernel.start_watch import StartWatch, process_name
from services.qrm.adapters.kernel.writer import Problem, Writer
from services.qrm.app import NAME, QrmApp
from services.qrm.keeping import LeaseKeeping, forget_lease, held_lock
from services.qrm.settings import QrmSettings
from shared import telemetry
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_tree import find_layout
from shared.adapters.host.sysfs import offline_cpus, read_topology
from shared.adapters.pod_sources import pod_source
from shared.app import App, Context, Plan
from shared.core.cgroups.layout import Layout, OwnLayout
from shared.core.cpus.cpuset import CpuSet
from shared.settings import CommonSettings, section


def _count(file: str, result: str) -> None:
    telemetry.CGROUP_WRITES.labels(file, result).inc()


def leave(common: CommonSettings, *, patience_s: float) -> tuple[Problem, ...]:
    """Give a node of a cluster back what qrm has taken, once no qrm runs there any more; what could not be written.

    It may be repeated: the lease goes last, and with it the word that there is anything to give back.

    Raises:
        Unavailable: no cgroup hierarchy, no topology, no list of pods; or the node's keeper still runs after so long.
    """
    cgroups = Cgroups(common.host_root)
    layout, pods = find_layout(cgroups), pod_source(common)
    with held_lock(common.state_dir, patience_s):
        if pods.generation() == 0:  # nobody ever knew of a pod here, so nobody took anything
            return ()
        machine = _machine(common, cgroups, KernelPins(cgroups, layout, pods).read)
        problems = give_back(Writer(cgroups, layout.top), layout, machine, pods.pods())
        if not problems:
            forget_lease(common.state_dir)
    return problems


def _machine(common: CommonSettings, cgroups: Cgroups, pins: Callable[[], Mapping[str, CpuSet]] = dict) -> Machine:
    root = common.host_root
    return Machine(
        cgroups,
        lambda: read_topology(root),
        lambda: numa_memory_bytes(root),
        lambda: exclusive_cpus(root) if sees_folder(root) else pins(),
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
    layout: Layout = OwnLayout(settings.top_group)
    pins: Callable[[], Mapping[str, CpuSet]] = dict
    if common.substrate == "kubernetes":
        layout = find_layout(cgroups)
        pins = KernelPins(cgroups, layout, pod_source(common)).read
    machine = _machine(common, cgroups, pins)
    groups = Groups(Writer(cgroups, layout.top, _count), machine, layout)
    keeping = None
    if settings.keeper and common.substrate != "sim":
        resident = common.substrate == "kubernetes"  # there it is a container of the agent's pod
        keeping = LeaseKeeping(common.state_dir, common.host_root, layout.top, resident=resident)
    return QrmApp(context, machine=machine, groups=groups, pods=pod_source(common), keeping=keeping,
                  offloader=Offloader(cgroups),
                  starts=StartWatch(cgroups, layout, process_name(common.host_root)))  # fmt: skip


PLAN = Plan(NAME, build)
