"""The allocation states status, pools and pods as the kernel grants them, and the rule with its numbers."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from services.qrm.core.active_advice import Stage, offered
from services.qrm.core.placement.dedicated_pods import Owned
from services.qrm.core.writes.classes import RECLAIMED, pool_of
from services.qrm.core.writes.outcome import WriteOutcome
from services.qrm.core.writes.plan import Sets
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import PodAllocation, PoolAllocation
from shared.contracts.envelope import Reason
from shared.contracts.mode import Mode
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.knobs import Write
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE, Layout
from shared.core.cpus.cpuset import CpuSet

_SHOWN_WRITES = 8
_CLASS_OF: dict[str, QosClass] = {RECLAIM: RECLAIMED, RESERVE: "system_cores", SHARE: "shared_cores"}


def status_of(stage: Stage, mode: Mode, *, readable: bool, as_wanted: bool) -> str:
    """The allocation's status; what went wrong counts before what is missing, and both before "applied"."""
    if mode != "enforce":
        return "dry-run"
    if not readable:
        return "failed"
    if stage != "applied":
        return stage
    return "applied" if as_wanted else "partial"


def pools_in_force(
    pools: Mapping[str, CpuSet],
    pods: Sequence[PodAllocation],
    outcome: WriteOutcome,
    layout: Layout,
    limit_bytes: int | None,
) -> tuple[PoolAllocation, ...]:
    """The pools by name, as the kernel has them; one whose group cannot be read is left out.

    A fixed pool is what its class's group has; where single pods made that group wider, it is the part of it that the
    pool was given. The others are what their pods have. In a layout without class groups that holds for every pool,
    and one without pods is what the next pod gets.
    """
    tree, granted = outcome.tree, outcome.granted
    cpus_of: dict[str, CpuSet] = {}
    mems_of: dict[str, CpuSet] = {}
    for pod in pods:
        if layout.classes and pod.pool in _CLASS_OF:
            continue  # its class's group says it
        cpus_of[pod.pool] = cpus_of.get(pod.pool, CpuSet()) | CpuSet.parse(pod.cpus)
        mems_of[pod.pool] = mems_of.get(pod.pool, CpuSet()) | CpuSet.parse(pod.mems)
    if layout.classes:
        single = bool(cpus_of)
        for pool, cpus in pools.items():
            group = layout.classes[_CLASS_OF[pool]]
            if group in granted:
                # Wider than its pool only because of pods with CPUs of their own; what is outside of
                # the pool is theirs.
                cpus_of[pool] = (granted[group] & cpus or granted[group]) if single else granted[group]
                mems_of[pool] = tree[group].mems
    # Kubelet's top group stands for "the groups can be read": without it no pool is reported.
    elif layout.top in granted:
        cpus_of = {**pools, **cpus_of}
        mems_of = {**dict.fromkeys(pools, tree[layout.top].mems), **mems_of}
    return tuple(
        PoolAllocation(
            pool=pool,
            cpus=str(cpus),
            mems=str(mems_of[pool]),
            memory_limit_bytes=limit_bytes if pool == RECLAIM else None,
        )
        for pool, cpus in sorted(cpus_of.items())
    )


def pods_in_force(
    pods: Sequence[Pod], owned: Mapping[str, Owned], outcome: WriteOutcome, layout: Layout
) -> tuple[PodAllocation, ...]:
    """The pods whose cgroup exists, in the order given."""
    found = ((pod, layout.pod_group(pod)) for pod in pods)
    return tuple(
        _pod_allocation(
            pod.uid,
            pod.namespace,
            pod.name,
            pool_of(pod, owned),
            Sets(outcome.granted[group], outcome.tree[group].mems),
        )
        for pod, group in found
        if group in outcome.granted
    )


@lru_cache(maxsize=1024)
def _pod_allocation(uid: str, namespace: str, name: str, pool: str, sets: Sets) -> PodAllocation:
    """The same from pass to pass for most pods, and frozen: validated once."""
    return PodAllocation(uid=uid, namespace=namespace, name=name, pool=pool, cpus=str(sets.cpus), mems=str(sets.mems))


def observing_text(pools: Mapping[str, CpuSet]) -> str:
    """Return the message of a node that observes, with the pools that it would have."""
    would_be = ", ".join(f"{name} {cpus}" for name, cpus in sorted(pools.items()))
    return f"observe: nothing is changed or offered; pools would be {would_be}; `mode: enforce` makes them so"


def mixed_pods(pods: Sequence[Pod], layout: Layout) -> list[str]:
    """Return the pods that limits of the reclaimed class's group would wrongly affect or miss; empty if they are in
    force."""
    if layout.reclaimed_group(pods) is not None or all(pod.qos != RECLAIMED for pod in pods):
        return []
    return [f"{pod.namespace}/{pod.name}" for pod in pods if layout.reclaimed_group([pod]) is None]


def mixed_text(pods: str) -> str:
    """Return the message about the reclaimed class next to these pods; empty if there are none."""
    if not pods:
        return ""
    return (
        f"pods that are best-effort or reclaimed but not both: {pods}: the reclaimed class has no quota and no memory "
        "limit as a whole, each of its pods its own"
    )


def offer_reason(advice: PoolAdvice | None, pools: Mapping[str, CpuSet]) -> Reason:
    """Return what would be offered to reclaimed pods in these pools, for a node that observes."""
    cpu_millis, memory_bytes = offered(advice, len(pools.get(RECLAIM, CpuSet())), None)
    return Reason(rule="would-offer", numbers={"cpu_millis": cpu_millis, "memory_bytes": memory_bytes})


def writes_reason(writes: Sequence[Write]) -> Reason:
    """Return what would be written, for a mode that does not write."""
    shown = {f"{n}": f"{w.group} {w.knob}={w.value}" for n, w in enumerate(writes[:_SHOWN_WRITES], start=1)}
    return Reason(rule="would-write", numbers={"writes": len(writes), **shown})
