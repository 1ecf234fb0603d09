"""One full example of each message of the cluster: what a node says beside its heartbeat, what central decided."""

from datetime import UTC, datetime
from typing import Any

from shared.contracts.cluster.cpus import CpuMap, CpuPod, CpuPool, CpuTable, CpuWatch
from shared.contracts.cluster.decision import DecidedObject, Decision
from shared.contracts.cluster.figures import FiguredContainers, FiguredParts, FiguredPods, PodFigures
from shared.contracts.cluster.heard import Ear, HeardNodes, HeardRefusal, HeardRound
from shared.contracts.cluster.offer import (
    NodeOffer,
    NumaAllocation,
    OfferedNuma,
    PodUses,
    ResourceAmounts,
    WindowUsage,
)
from shared.contracts.cluster.profiles import IndicatorTargets, ProfiledService, ServiceProfiles
from shared.contracts.envelope import Reason
from shared.contracts.readiness import ConfigRefusal

AMOUNTS = ResourceAmounts(cpu_millis=4000, memory_bytes=8 << 30)


def node_offer(envelope: dict[str, Any]) -> NodeOffer:
    """A node of two NUMA nodes with one pod."""
    return NodeOffer(
        **envelope, mode="enforce", reclaimed=AMOUNTS, batch=AMOUNTS, mid=AMOUNTS, stale=False,
        topology_policy="numeric_container",
        numas=(OfferedNuma(numa=0, socket=0, capacity=AMOUNTS, allocatable=AMOUNTS, reclaimed_cpu_millis=2000,
                           allocations=(NumaAllocation(uid="1f3a-5b", dedicated=True, requests=AMOUNTS),)),),
        usage_age_s=1.5, window_s=60.0, used=AMOUNTS, windows=(WindowUsage(window_s=300.0, used={"p95": AMOUNTS}),),
        pods=PodUses(uids=("1f3a-5b",), namespaces=("team-a",), names=("encode",), qos=("shared_cores",),
                     prod=(True,), cpu_millis=(1500,), memory_bytes=(None,)),
        pods_left_out=1,
    )  # fmt: skip


def pod_figures(envelope: dict[str, Any]) -> PodFigures:
    """A node with one pod of one container."""
    return PodFigures(
        **envelope, measured_at=datetime(2026, 1, 2, 3, 4, 4, tzinfo=UTC), period_s=15.0,
        node_series={"node_cpu_usage": 3.5},
        numas=FiguredParts(names=("0", "1"), series={"numa_memory_usage": (1, 2)}),
        pools=FiguredParts(names=("share",), series={"node_advisor_pool_load_1min": (2.5,)}),
        pods=FiguredPods(uids=("1f3a-5b",), namespaces=("team-a",), names=("encode",),
                         labels={"qos_level": ("shared_cores",), "pool": ("share",), "app": (None,)},
                         series={"pod_cpu_usage": (1.5,), "pod_memory_usage": (None,)}),
        containers=FiguredContainers(pods=(0,), names=("main",), series={"container_cpu_usage": (1.5,)}),
        pods_left_out=0,
    )  # fmt: skip


def heard_round(envelope: dict[str, Any]) -> HeardRound:
    """A central that hears one shard of two, in which a node is not well."""
    nodes = HeardNodes(
        shard=1, ready=False, mode="enforce", failing=("qrm: no input",), applied="0123456789ab", revision=3,
        refusals=(HeardRefusal(service="advisor", refused=ConfigRefusal(revision=4, why="no such key")),),
        nodes=("ip-10-0-0-2.ec2.internal",), boot_ids=("0123456789abcdef",), seqs=(8,), sent_ms=(1_767_323_044_000,),
        age_ms=(250,),
    )  # fmt: skip
    return HeardRound(**envelope, round=41, part=1, parts=2, probe_age_s=0.5, ears=(Ear(shard=1, listening_s=62.5),),
                      nodes=(nodes,))  # fmt: skip


def service_profiles(envelope: dict[str, Any]) -> ServiceProfiles:
    """A node with two pods of a service, of which one is baseline."""
    targets = IndicatorTargets(cpu_usage_ratio=0.6, cpu_sched_wait=460.0, cpu_pressure=5.0, cpi=1.4)
    service = ProfiledService(namespace="team-a", name="encode", targets=targets, pods=("1f3a-5b", "1f3a-5c"),
                              kept={"baseline": ("1f3a-5b",)})  # fmt: skip
    return ServiceProfiles(**envelope, services=(service,), pods_left_out=1)


def cpu_watch(envelope: dict[str, Any]) -> CpuWatch:
    """Somebody looks at a node."""
    return CpuWatch(**envelope, watch_s=15.0)


def node_cpus(envelope: dict[str, Any]) -> CpuMap:
    """Two CPUs of one core, one of them not measured, with one pool and one pod."""
    table = CpuTable(ids=(0, 1), sockets=(0, 0), numas=(0, 0), l3s=(0, -1), cores=(0, 0), busy_percent=(40, None))
    pod = CpuPod(uid="1f3a-5b", namespace="team-a", name="encode", pool="share", cpus="0-1", cpu_millis=400)
    return CpuMap(**envelope, table=table, pools=(CpuPool(pool="share", cpus="0-1"),), pods=(pod,), pods_left_out=1)


def decision(envelope: dict[str, Any]) -> Decision:
    """A pod that was placed."""
    return Decision(
        **envelope, area="scheduling", verdict="refused", message="no node has enough",
        about=DecidedObject(kind="pod", namespace="team-a", name="encode", uid="1f3a-5b"),
        why=(Reason(rule="reclaimed_fit", numbers={"node": "n1", "asked_millis": 4000, "left_millis": 100}),),
    )  # fmt: skip
