"""`numa_offer_bytes` and `cache_to_drop` read the memory offer and the page cache to drop from a sample."""

from collections.abc import Sequence

from services.advisor.core.memory.cache_reaper import (
    MAX_DROP_BYTES,
    Cached,
    Shortage,
    critical_watermark_bytes,
    drops,
    pods_to_reap,
)
from services.advisor.core.memory.holders import Holder, open_numas
from services.advisor.core.memory.numa import NumaReserve, NumaRoom, NumaRules, ReclaimLimits, numa_headroom_bytes
from services.advisor.core.model.view import HOLDING, ContainerView, View
from services.advisor.core.offer.cpu import within
from shared.contracts.sample import NodeSample, NumaReading
from shared.core.cgroups.layout import RECLAIM


def numa_offer_bytes(
    sample: NodeSample, view: View, reserved_bytes: int, rules: NumaRules, canonical_bytes: int
) -> dict[int, int] | None:
    """The offer by NUMA node, ascending, in all at most what the canonical rule offers.

    None where a figure of an open NUMA node is missing, or the view is too old: then the canonical rule decides.
    """
    scale = view.memory.watermark_scale_factor
    readings = {reading.numa: reading for reading in sample.numas}
    if not view.fresh or not readings or scale is None:
        return None
    holders = [holder_of(container) for container in view.containers]
    open_ones = open_numas(holders, readings)
    rooms = {numa: room for numa in open_ones if (room := _room(readings[numa])) is not None}
    # A node without figures would count as having no memory at all, and shift the offer to the others.
    if len(rooms) != len(open_ones):
        return None
    reclaimed = sample.pool(RECLAIM)
    limits = ReclaimLimits(reclaimed.memory_limit_bytes if reclaimed else None)
    reserved = reserved_bytes * len(open_ones) / len(readings)
    by_numa = numa_headroom_bytes(rooms, holders, NumaReserve(reserved, scale), rules, limits)
    return within(dict.fromkeys(sorted(readings), 0) | by_numa, canonical_bytes)


def holder_of(container: ContainerView) -> Holder:
    """A container as it counts for memory. One that has NUMA nodes for itself lends nothing of their memory."""
    numas = tuple(numa for numa, _ in container.cpus_per_numa) or None
    alone = container.exclusive and container.dedicated and numas is not None
    return Holder(
        qos=container.qos,
        figures=container.memory,
        request_bytes=container.request_bytes,
        exclusive=alone,
        numas=numas,
        lends=not alone,
    )


def _room(reading: NumaReading) -> NumaRoom | None:
    total, free, inactive = reading.memory_total_bytes, reading.memory_free_bytes, reading.inactive_file_bytes
    return None if total is None or free is None or inactive is None else NumaRoom(total, free, inactive)


def cache_to_drop(sample: NodeSample, view: View, least_bytes: int, most_bytes: int = MAX_DROP_BYTES) -> dict[str, int]:
    """Return the bytes of page cache to drop now, by pod UID; empty if a figure is missing.

    Available memory counts as free memory, because page cache that can be dropped is no shortage.
    """
    total, available = view.memory.total_bytes, view.memory.available_bytes
    scale = view.memory.watermark_scale_factor
    if not view.fresh or total is None or available is None or scale is None:
        return {}
    shortage = Shortage(total, available, critical_watermark_bytes(total, scale, least_bytes))
    if shortage.target_bytes <= 0:  # as nearly always: nobody need be looked at
        return {}
    cached = _cached(sample)
    held: dict[str, int] = {}
    for container in cached:
        held[container.pod] = held.get(container.pod, 0) + (container.cache_bytes or 0)
    return drops(shortage, pods_to_reap(shortage, cached), held, most_bytes)


def _cached(sample: NodeSample) -> Sequence[Cached]:
    return [
        Cached(
            reading.pod.uid, reading.pod.qos, _files_bytes(container.memory_cache_bytes, container.memory_shmem_bytes)
        )
        for reading in sample.pods
        if reading.pod.phase in HOLDING
        for container in reading.containers
    ]


def _files_bytes(cache_bytes: int | None, shmem_bytes: int | None) -> int | None:
    """Return page cache without shared memory, which cannot be dropped."""
    return None if cache_bytes is None else max(0, cache_bytes - (shmem_bytes or 0))
