"""The node's offer as published on the bus: the amounts on the Node, and the use of the node and its pods."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.reporter.core.cluster.numa_zones import NumaZone, numa_zones, reclaimed_shares
from services.reporter.core.field import FieldView, Offered
from services.reporter.core.node_metric.usage_windows import UsageWindows, UsedResources
from shared.contracts.cluster.offer import (
    MAX_ALLOCATIONS,
    MAX_NUMAS,
    MAX_PODS,
    NumaAllocation,
    OfferedNuma,
    PodUses,
    ResourceAmounts,
    TopologyPolicy,
    WindowUsage,
)
from shared.contracts.mode import NodeMode
from shared.contracts.pod import Pod
from shared.core.pods.koord_qos import priority_class

BINDING: TopologyPolicy = "numeric_container"
"""How qrm binds: to the fewest NUMA nodes that suffice, container by container."""
PROD = "koord-prod"


@dataclass(frozen=True, slots=True)
class OfferNow:
    """What is offered at one moment. None: unknown, or not offered."""

    mode: NodeMode
    stale: bool
    reclaimed: Offered | None
    batch: Offered | None
    mid: Offered | None

    @property
    def amounts(self) -> tuple[int | None, ...]:
        """Return all amounts in one order; None for missing ones."""
        kinds = (self.reclaimed, self.batch, self.mid)
        return tuple(
            amount for one in kinds for amount in ((None, None) if one is None else (one.cpu_millis, one.memory_bytes))
        )

    def message_fields(self) -> dict[str, Any]:
        """As fields of the message."""
        return {
            "mode": self.mode,
            "stale": self.stale,
            **{name: None if one is None else ResourceAmounts(cpu_millis=one.cpu_millis, memory_bytes=one.memory_bytes)
               for name, one in (("reclaimed", self.reclaimed), ("batch", self.batch), ("mid", self.mid))},
        }  # fmt: skip


def offer_now(view: FieldView, mode: NodeMode, *, withdrawn: bool) -> OfferNow:
    """Return what a view offers; nothing while central has withdrawn the node's resources."""
    applied, reclaimed = view.allocation, view.offered
    if reclaimed is None and applied is not None:
        reclaimed = Offered(applied.reclaimed_cpu_millis, applied.reclaimed_memory_bytes)
    kinds = [reclaimed, view.batch, view.mid]
    if withdrawn:
        kinds = [None if one is None else Offered(0, 0) for one in kinds]
    return OfferNow(mode, not view.allocation_fresh, *kinds)


def cannot_wait(said: OfferNow | None, now: OfferNow, min_rise: Offered) -> bool:
    """Return whether the offer must be published at once: on any fall, a rise that matters, an appearance or
    disappearance, or another mode.

    A pod that is placed on a withdrawn offer would be evicted, so no fall is too small. Small rises wait; otherwise
    every node of a cluster would publish with every sample.
    """
    if said is None or (said.mode, said.stale) != (now.mode, now.stale):
        return True
    steps = (min_rise.cpu_millis, min_rise.memory_bytes) * 3
    return any(
        _matters(before, after, step) for before, after, step in zip(said.amounts, now.amounts, steps, strict=True)
    )


def _matters(before: int | None, after: int | None, step: int) -> bool:
    if before is None or after is None:
        return before is not after
    rise = after - before
    return rise < 0 or (rise > 0 and (rise >= step or before == 0))


def numas(view: FieldView) -> tuple[OfferedNuma, ...]:
    """Return every NUMA node that the newest sample names, without its share of the offer; empty without a sample."""
    if view.sample is None or not view.sample_fresh:
        return ()
    return tuple(_numa(zone) for zone in list(numa_zones(view.sample, view.allocation))[:MAX_NUMAS])


def with_shares(zones: Sequence[OfferedNuma], now: OfferNow, view: FieldView) -> tuple[OfferedNuma, ...]:
    """Return the NUMA nodes with their shares of the offer, which add up to it."""
    applied, sample = view.allocation, view.sample
    if applied is None or sample is None or now.reclaimed is None:
        return tuple(zones)
    shares = reclaimed_shares(applied, sample.numas, now.reclaimed.cpu_millis)
    return tuple(zone.model_copy(update={"reclaimed_cpu_millis": shares.get(zone.numa)}) for zone in zones)


def _numa(zone: NumaZone) -> OfferedNuma:
    return OfferedNuma(
        numa=zone.numa,
        socket=zone.socket,
        capacity=ResourceAmounts(cpu_millis=_millis(zone.cpus), memory_bytes=zone.memory_bytes),
        # No part of a NUMA node's memory is reserved.
        allocatable=ResourceAmounts(cpu_millis=_millis(zone.free_cpus), memory_bytes=zone.memory_bytes),
        allocations=tuple(_allocation(pod) for pod in zone.bound if pod.qos != "reclaimed_cores")[:MAX_ALLOCATIONS],
    )


def _allocation(pod: Pod) -> NumaAllocation:
    asked = ResourceAmounts(cpu_millis=pod.cpu_request_millis, memory_bytes=pod.memory_request_bytes)
    return NumaAllocation(uid=pod.uid, dedicated=pod.qos == "dedicated_cores", requests=asked)


def _millis(cpus: int | None) -> int | None:
    return None if cpus is None else cpus * 1000


def uses(windows: UsageWindows, window_s: float, longer_s: Iterable[int], now_s: float) -> dict[str, Any]:
    """Return the use of the node, as fields of the message without its pods."""
    return {
        "window_s": window_s,
        "used": _amounts(windows.node.mean(window_s, now_s)),
        "windows": tuple(
            WindowUsage(window_s=length_s, used={name: _amounts(used) for name, used in found.items()})
            for length_s in longer_s
            if (found := windows.node.percentiles(length_s, now_s))
        ),
    }


def pod_uses(windows: UsageWindows, window_s: float, now_s: float, most: int = MAX_PODS) -> PodUses:
    """Return the use of each pod, by namespace and name, for at most `most` pods."""
    pods = sorted(windows.pods.values(), key=lambda kept: kept[0].key)[:most]
    used = [window.mean_parts(window_s, now_s) for _, window in pods]
    return PodUses(
        uids=tuple(pod.uid for pod, _ in pods),
        namespaces=tuple(pod.namespace for pod, _ in pods),
        names=tuple(pod.name for pod, _ in pods),
        qos=tuple(pod.qos for pod, _ in pods),
        prod=tuple(_is_prod(pod) for pod, _ in pods),
        cpu_millis=tuple(cpu_millis for cpu_millis, _ in used),
        memory_bytes=tuple(memory_bytes for _, memory_bytes in used),
    )


def _is_prod(pod: Pod) -> bool:
    """By label or number; without either, as the class of pods that it runs as."""
    named = priority_class(pod.labels, pod.priority)
    return named == PROD if named else pod.qos != "reclaimed_cores"


def _amounts(used: UsedResources | None) -> ResourceAmounts:
    return (
        ResourceAmounts()
        if used is None
        else ResourceAmounts(cpu_millis=used.cpu_millis, memory_bytes=used.memory_bytes)
    )


def shorter(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the same with half of its pods, for a message that is too long; then without NUMA nodes; None if it
    cannot be shortened.

    Unpublished NUMA nodes are unknown, which a scheduler must handle anyway.
    """
    pods: PodUses = fields["pods"]
    if not pods.uids:
        return {**fields, "numas": ()} if fields["numas"] else None
    kept = len(pods.uids) // 2
    columns = {name: getattr(pods, name)[:kept] for name in PodUses.model_fields}
    left_out = fields["pods_left_out"] + len(pods.uids) - kept
    return {**fields, "pods": PodUses(**columns), "pods_left_out": left_out}
