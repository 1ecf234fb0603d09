"""Moments at which an eviction plugin sees pressure whatever it watches, and moments at which it sees none."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from services.evictor.core.plugin import Plugin, PluginSettings, Pressure, Silence, View, checked_finding
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Container, Pod, QosClass
from shared.contracts.sample import (
    ContainerReading,
    CpuUsage,
    GroupNuma,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
)
from shared.contracts.sample import Pressure as Stall
from sublet.laws.result import BrokenLaw

GIB = 1 << 30
TOTAL_BYTES = 100 * GIB
ENVELOPE = {"node": "node1", "boot_id": "0" * 8, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}
POOL_OF = {"reclaimed_cores": "reclaim", "shared_cores": "share", "dedicated_cores": "dedicated"}
ANNOTATIONS = {"katalyst.kubewharf.io/numa_bind_result": "0", "katalyst.kubewharf.io/nic_selection_result": "eth0"}
_RATES = (
    "sched_wait_tasks", "kswapd_steal_pages_per_s", "direct_steal_pages_per_s", "refault_pages_per_s",
    "disk_read_bytes_per_s", "disk_write_bytes_per_s", "network_receive_bytes_per_s", "network_transmit_bytes_per_s",
)  # fmt: skip
"""Of the node: figures of which there is much while there is too little of what they are made of."""
STEPS, STEP_S = 14, 10.0
"""Samples of one shortage, and the time from one to the next."""


def bound(name: str, qos: QosClass = "reclaimed_cores", **fields: Any) -> Pod:
    """A pod on NUMA node 0 and on the card eth0; `cpu` milli-cores and `memory` bytes are what it asks for."""
    cpu, memory = fields.pop("cpu", 0), fields.pop("memory", 0)
    containers = (Container(name="main", cpu_request_millis=cpu, memory_request_bytes=memory),)
    made = {"uid": name.encode().hex(), "grace_s": 5.0, "annotations": ANNOTATIONS} | fields
    return Pod(name=name, qos=qos, containers=containers, **made)


def busy(of: Pod, used: int = 1) -> PodReading:
    """Far more of everything than it asked for."""
    written = {"rootfs_used_bytes": float((50 + used) * GIB), "rootfs_inodes_used": 1000.0 + used}
    container = ContainerReading(
        name="main",
        cpu_usage_cores=40.0 + used,
        cpu_sys_cores=30.0 + used,
        throttled_cores=900.0 + used,
        extra=written,
        **_busy_group(used),
    )
    return PodReading(pod=of, containers=(container,))


def idle(of: Pod) -> PodReading:
    """Next to nothing of everything."""
    written = {"rootfs_used_bytes": 1.0, "rootfs_inodes_used": 1.0}
    container = ContainerReading(
        name="main", cpu_usage_cores=0.1, cpu_sys_cores=0.01, throttled_cores=0.0, extra=written, **_idle_group()
    )
    return PodReading(pod=of, containers=(container,))


def _busy_group(used: int) -> dict[str, Any]:
    """Figures that containers and pools have, beside the CPU that they use."""
    held_bytes, stall = (1 + used) * GIB, Stall(some_avg10_percent=90, full_avg10_percent=90)
    return {
        "load1": 900.0 + used,
        "load5": 900.0 + used,
        "runnable_tasks": 900 + used,
        "throttled_ratio": 0.9,
        "memory_usage_bytes": held_bytes,
        "memory_rss_bytes": held_bytes,
        "memory_working_set_bytes": held_bytes,
        "memory_cache_bytes": used * GIB,
        "memory_shmem_bytes": used * GIB,
        "memory_numa": (GroupNuma(numa=0, anon_bytes=held_bytes),),
        "refault_pages_per_s": 1e6 + used,
        "sched_wait_tasks": 900.0 + used,
        "disk_read_bytes_per_s": 1e9 + used,
        "disk_write_bytes_per_s": 1e9 + used,
        "cpu_pressure": stall,
        "memory_pressure": stall,
        "io_pressure": stall,
    }


def _idle_group() -> dict[str, Any]:
    calm = dict.fromkeys(_busy_group(0), 0)
    stalls = dict.fromkeys(("cpu_pressure", "memory_pressure", "io_pressure"), Stall())
    held = dict.fromkeys(("memory_usage_bytes", "memory_rss_bytes", "memory_working_set_bytes"), 1)
    return calm | stalls | held | {"load1": 0.1, "load5": 0.1, "memory_numa": (GroupNuma(numa=0, anon_bytes=1),)}


def sample(readings: Sequence[PodReading], *, low: bool, step: int = 0) -> NodeSample:
    """The node with these pods; with `low` of everything too little."""
    free, percent = (0, 90) if low else (50 * GIB, 0)
    extra = {
        "rootfs_capacity_bytes": 100.0 * GIB,
        "rootfs_available_bytes": 0.0 if low else 50.0 * GIB,
        "rootfs_inodes": 1000.0,
        "rootfs_inodes_free": 0.0 if low else 500.0,
        "nic_up.eth0": 0.0 if low else 1.0,
    }
    node = NodeReading(
        online_cpus="0-47",
        memory_total_bytes=TOTAL_BYTES,
        memory_free_bytes=free,
        memory_available_bytes=free,
        watermark_scale_factor=100,
        kswapd_steal_pages=1_000_000 * step if low else 0,
        memory_pressure=Stall(some_avg10_percent=percent),
        cpu_pressure=Stall(some_avg10_percent=percent),
        io_pressure=Stall(some_avg10_percent=percent, full_avg10_percent=percent),
        runnable_tasks=9000 if low else 1,
        load1=9000.0 if low else 1.0,
        load5=9000.0 if low else 1.0,
        cpu_usage_cores=48.0 if low else 0.0,
        cpu_steal_cores=9.0 if low else 0.0,
        cpus=CpuUsage(cpus="0-47", busy_percent=(100 if low else 0,) * 48),
        **dict.fromkeys(_RATES, 1e9 if low else 0.0),
        extra=extra,
    )
    numa = NumaReading(
        numa=0,
        cpus="0-47",
        memory_total_bytes=TOTAL_BYTES,
        memory_free_bytes=free,
        inactive_file_bytes=10 * GIB,
        active_file_bytes=5 * GIB,
        slab_reclaimable_bytes=GIB,
        file_bytes=20 * GIB,
        watermark_min_bytes=GIB,
        watermark_low_bytes=2 * GIB,
        watermark_high_bytes=3 * GIB,
    )
    group = _busy_group(1) if low else _idle_group()
    pools = (PoolReading(pool="reclaim", cpu_usage_cores=0.001 if low else 4.0, **group),)
    return NodeSample(
        **ENVELOPE, seq=1, window_s=STEP_S, node_reading=node, numas=(numa,), pods=tuple(readings), pools=pools
    )


def view(readings: Sequence[PodReading], *, low: bool, t_s: float = 0.0, step: int = 0) -> View:
    """With `low` of everything too little, and next to nothing on offer."""
    offer = {RECLAIMED_CPU: 0 if low else 10**9, RECLAIMED_MEMORY: 0 if low else 10**15}
    pools = {"share": "0-3", "dedicated": "4-7", "reclaim": "8-11"}
    allocation = Allocation(
        **ENVELOPE,
        seq=1,
        status="applied",
        pools=tuple(PoolAllocation(pool=pool, cpus=cpus) for pool, cpus in pools.items()),
        pods=tuple(
            PodAllocation(uid=r.pod.uid, namespace=r.pod.namespace, name=r.pod.name, pool=POOL_OF[r.pod.qos], cpus="0")
            for r in readings
            if r.pod.qos in POOL_OF
        ),
    )
    return View(t_s, sample(readings, low=low, step=step), offer, {0: offer}, allocation)


def shown(plugin: Plugin[Any, Any, Any], settings: PluginSettings, views: Sequence[View]) -> list[Pressure | Silence]:
    """What a plugin says of one view after the other.

    Raises:
        BrokenLaw: an answer is none that a plugin may give.
    """
    memory, findings = plugin.start(), []
    for one in views:
        answer: object = plugin.evaluate(memory, one, settings)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise BrokenLaw(plugin.evaluate, f"evaluate: want (memory, finding), got {answer!r}")
        memory, finding = answer
        try:
            findings.append(checked_finding(finding))
        except (TypeError, ValueError) as error:
            raise BrokenLaw(plugin.evaluate, str(error)) from None
    return findings


def pressed_views(readings: Sequence[PodReading]) -> list[View]:
    """The same shortage for minutes."""
    return [view(readings, low=True, t_s=STEP_S * step, step=step) for step in range(STEPS)]


def calm_views(readings: Sequence[PodReading]) -> list[View]:
    """Plenty of everything for minutes."""
    return [view(readings, low=False, t_s=STEP_S * step, step=step) for step in range(STEPS)]


def pressed(
    plugin: Plugin[Any, Any, Any], settings: PluginSettings, readings: Sequence[PodReading]
) -> tuple[Pressure | None, View]:
    """What a plugin sees at the end of a shortage, and the view in which it does."""
    views = pressed_views(readings)
    finding = shown(plugin, settings, views)[-1]
    return (finding if isinstance(finding, Pressure) else None), views[-1]
