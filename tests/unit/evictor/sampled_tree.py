"""Samples as the metrics service makes them: its own sources over a generated host, calm or short of everything.

What differs between the cgroup versions is written as each kernel writes it; the plugins see what came over the wire.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from kernel_trees import GIB, KernelTree
from plugin_world import ENVELOPE, STEP_S, STEPS

from services.evictor.core.plugin import View
from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.core.figures.results import LastPass
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from services.qrm.core.active_advice import offered_by_numa
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY, Container, Pod
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import POOL_OF_QOS, class_group, container_group
from shared.core.cpus.cpuset import CpuSet
from shared.core.file_system import FileSystem

NUMAS = {0: CpuSet.parse("0,2"), 1: CpuSet.parse("1,3")}
"""As the generated host has them."""
POOLS = {"share": "0,2", "reclaim": "1,3"}
CARD = {"katalyst.kubewharf.io/nic_selection_result": "eth0"}
PODS = tuple(
    Pod(uid=uid, name=name, qos=qos, annotations=CARD,
        containers=(Container(name="main", cpu_request_millis=millis, memory_request_bytes=GIB),))
    for uid, name, qos, millis in (("aa", "web", "shared_cores", 1000), ("bb", "batch", "reclaimed_cores", 1500))
)  # fmt: skip
MEMS = {"aa": "0", "bb": "1"}


def filled(share: float) -> FileSystem:
    """A disk of which so much is in use."""
    used, inodes = int(share * 100 * GIB), int(share * 1000)
    return FileSystem(100 * GIB, used, 100 * GIB - used, 1000, 1000 - inodes)


def samples(
    root: Path, version: int, *, pressed: bool, without: Sequence[Collection[str]] = ((),)
) -> list[list[NodeSample]]:
    """One row of samples for each set of sources that are missing, all of the same minutes of the same host."""
    tree, now_s = KernelTree(root, version), 0.0
    tree.machine()
    tree.card("eth0", state="down" if pressed else "up")
    tids = tree.tasks("R" * (60 if pressed else 1))
    cgroups, disk = Cgroups(root), filled(0.99 if pressed else 0.3)
    collectors = [
        Collector(
            HostReader(root, cgroups, lambda _: disk),
            {name: source for name, source in known_sources().items() if name not in missing},
            LocalTargets(root),
            lambda: now_s,
        )
        for missing in without
    ]
    memories, rows = [LastPass()] * len(collectors), [list[NodeSample]() for _ in collectors]
    for step in range(STEPS):
        now_s = step * STEP_S
        _write(tree, now_s, tids, pressed=pressed)
        for place, collector in enumerate(collectors):
            collected = collector.collect(PODS)
            assert not collected.failures
            fields, memories[place] = summarise(memories[place], collected.readings, collector.offered, PODS, now_s)
            sent = NodeSample(**ENVELOPE, seq=step, **fields)
            rows[place].append(NodeSample.decode(sent.encode()))
    return rows


def _write(tree: KernelTree, at_s: float, tids: Sequence[int], *, pressed: bool) -> None:
    """The host at a moment: its counters have run since 0."""
    ticks, free = int(at_s * 100), 0 if pressed else 12 * GIB
    user_idle = (ticks, 0) if pressed else (0, ticks)
    tree.node(
        free=free,
        total=16 * GIB,
        steal=int(at_s) * 10_000 if pressed else 5,
        cpu_ticks=dict.fromkeys(range(4), user_idle),
    )
    for numa in NUMAS:
        tree.numa_memory(numa, free=free // 2, total=8 * GIB, inactive_file=0)
    web, batch = PODS
    busy, system = (1.8, 1.5) if pressed else (0.1, 0.01)
    memory = 3 * GIB if pressed else 100 << 20
    for pod, cores, of_kernel in ((web, busy, system), (batch, 0.001, 0.0)):
        group = container_group(pod, "main")
        tree.group(group, usage_ns=int(at_s * cores * 1e9), system_ns=int(at_s * of_kernel * 1e9), memory=memory,
                   rss=memory, anon_pages=(memory // 8192,) * 2, tids=tids if pod is web else ())  # fmt: skip
        tree.group(class_group(pod.qos), usage_ns=int(at_s * cores * 1e9), memory=memory)


def views(row: Sequence[NodeSample], *, offered_millis: int) -> list[View]:
    """What the evictor makes of samples and of an allocation with so much on offer."""
    parts = offered_by_numa(offered_millis, CpuSet.parse(POOLS["reclaim"]), NUMAS)
    allocation = Allocation(
        **ENVELOPE,
        seq=1,
        status="applied",
        pools=tuple(PoolAllocation(pool=pool, cpus=cpus) for pool, cpus in POOLS.items()),
        pods=tuple(
            PodAllocation(uid=p.uid, namespace=p.namespace, name=p.name, pool=POOL_OF_QOS[p.qos], cpus="0",
                          mems=MEMS[p.uid])
            for p in PODS
        ),
        reclaimed_numas=parts,
    )  # fmt: skip
    offer = {TUTORIAL_RECLAIMED_CPU: offered_millis, TUTORIAL_RECLAIMED_MEMORY: 100 * GIB}
    by_numa = {part.numa: {TUTORIAL_RECLAIMED_CPU: part.reclaimed_cpu_millis} for part in parts or ()}
    return [View(STEP_S * step, sample, offer, by_numa, allocation) for step, sample in enumerate(row)]
