"""Wiring of qrm: real cgroups, this substrate's pods, the topology of this host, the lease and its watchdog."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.checkpoint.writer import CheckpointWriter
from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.kubelet import KernelPins, exclusive_cpus, sees_folder
from services.qrm.adapters.kernel.machine import HostMachine, numa_memory_bytes
from services.qrm.adapters.kernel.start_watch import StartWatch, process_name
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.lease.client import LeaseClient
from services.qrm.adapters.lease.file import remove_lease
from services.qrm.adapters.lease.lock import exclusive_lock
from services.qrm.adapters.offload.loop import OffloadLoop
from services.qrm.adapters.offload.offloader import CgroupOffloader
from services.qrm.adapters.resctrl.bandwidth_loop import BandwidthLoop
from services.qrm.adapters.resctrl.tree import ResctrlTree
from services.qrm.app import QrmApp
from services.qrm.core.writes.outcome import Problem
from services.qrm.ports import QrmPorts, no_own_pod
from services.qrm.settings import NAME, QrmSettings
from shared import telemetry
from shared.adapters.files.boot import this_boot
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_tree import find_layout
from shared.adapters.host.own_pod import OwnPod
from shared.adapters.host.sysfs import offline_cpus, read_topology
from shared.adapters.pod_sources import pod_source
from shared.app import App, Context, Plan
from shared.core.cgroups.layout import Layout, OwnLayout
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused
from shared.settings import CommonSettings, section


def _count(file: str, result: str) -> None:
    telemetry.CGROUP_WRITES.labels(file, result).inc()


def restore(common: CommonSettings, *, patience_s: float) -> tuple[Problem, ...]:
    """Restore kubelet's groups on a cluster node after qrm has stopped; return what could not be written.

    The call may be repeated: the lease is removed last, and with it the mark that there is anything to restore.

    Raises:
        Unavailable: no cgroup hierarchy, no topology, no list of pods, or a watchdog that still runs.
    """
    cgroups = Cgroups(common.host_root)
    layout, pods = find_layout(cgroups), pod_source(common)
    with exclusive_lock(common.state_dir, patience_s):
        if pods.generation() == 0:  # no pod was ever known here, so nothing was written
            return ()
        machine = _machine(common, cgroups, KernelPins(cgroups, layout, pods).read)
        groups = CgroupGroups(
            CgroupWriter(cgroups, layout.top), machine, layout, ResctrlTree(common.host_root), _record(common)
        )
        # What cannot be read is restored as far as it may have been written.
        with suppress(Refused, OSError):
            groups.resume()
        problems = groups.restore(pods.pods(), at_once=True)
        if not problems:
            remove_lease(common.state_dir)
    return problems


def _record(common: CommonSettings) -> FormerValuesFile:
    return FormerValuesFile(common.state_dir, this_boot())


def _machine(common: CommonSettings, cgroups: Cgroups, pins: Callable[[], Mapping[str, CpuSet]] = dict) -> HostMachine:
    root = common.host_root
    return HostMachine(
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
    in_pod = common.substrate == "kubernetes"
    ahead = in_pod and common.scheduling != "none"
    if in_pod:
        layout = find_layout(cgroups)
        pins = KernelPins(cgroups, layout, pod_source(common)).read
    machine = _machine(common, cgroups, pins)
    lease = None
    # The simulator's file tree has no processes whose CPUs would have to be restored.
    if settings.keeper and common.substrate != "sim":
        # In a cluster it is a container of the agent's pod.
        lease = LeaseClient(common.state_dir, common.host_root, layout.top, resident=in_pod)
    control = ResctrlTree(common.host_root)
    ports = QrmPorts(
        machine=machine,
        groups=CgroupGroups(CgroupWriter(cgroups, layout.top, _count), machine, layout, control, _record(common)),
        pods=pod_source(common),
        lease=lease,
        offloader=OffloadLoop(CgroupOffloader(cgroups), layout, context.clock),
        bandwidth=BandwidthLoop(control, lambda: machine.whole, context.clock),
        starts=StartWatch(cgroups, layout, process_name(common.host_root)),
        checkpoints=CheckpointWriter(CheckpointFile(common.state_dir, context.wire.node)),
        raise_own_weight=OwnPod(cgroups, layout, os.getpid()).raise_weight if ahead else no_own_pod,
    )
    return QrmApp(context, ports, settings)


PLAN = Plan(NAME, build)
