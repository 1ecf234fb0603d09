"""Moments at which every plugin of the folder sees pressure, and moments at which none does."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evictor_world import GIB, TOTAL_BYTES, pod

from services.evictor import plugins as plugin_folder
from services.evictor.core.plugin import Plugin, PluginSettings, Pressure, View
from services.evictor.registry import plugins_in
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod
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

PLUGINS = plugins_in(plugin_folder)
ENVELOPE = {"node": "node1", "boot_id": "0" * 8, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}
POOL_OF = {"reclaimed_cores": "reclaim", "shared_cores": "share", "dedicated_cores": "dedicated"}
SETTINGS: dict[str, dict[str, Any]] = {
    "cpu_suppression": {"min_suppression_tolerance_duration_s": 20},
    "network_interface": {"nic_unhealthy_tolerance_s": 20},
    "rootfs_overuse": {
        "supported_qos": ("shared_cores", "reclaimed_cores"),
        "shared_threshold_ratio": 0.1,
        "reclaimed_threshold_ratio": 0.1,
        "max_victims": 9,
    },
    "rootfs_pressure": {"minimum_free_ratio": 0.1, "minimum_inodes_free_ratio": 0.1},
    "system_memory_pressure": {"kswapd_exceed_duration_s": 20},
}
"""What a plugin needs beyond its defaults to see anything within the steps of `pressed`."""
STEPS, STEP_S = 14, 10.0


def settings_of(section: str) -> PluginSettings:
    settings: PluginSettings = PLUGINS[section].settings(enabled=True, **SETTINGS.get(section, {}))
    return settings


def bound(name: str, qos: str = "reclaimed_cores", **fields: Any) -> Pod:
    """A pod on NUMA node 0 and on the card eth0."""
    said = {"katalyst.kubewharf.io/numa_bind_result": "0", "katalyst.kubewharf.io/nic_selection_result": "eth0"}
    return pod(name, qos, annotations=said, **fields)


def busy(of: Pod, used: int = 1) -> PodReading:
    """Far more of everything than it asked for."""
    container = ContainerReading(
        name="main",
        cpu_usage_cores=40.0 + used,
        cpu_sys_cores=30.0 + used,
        load1=900.0 + used,
        memory_usage_bytes=(1 + used) * GIB,
        memory_rss_bytes=(1 + used) * GIB,
        memory_numa=(GroupNuma(numa=0, anon_bytes=(1 + used) * GIB),),
        memory_pressure=Stall(some_avg10_percent=90),
        runnable_tasks=900 + used,
        disk_write_bytes_per_s=1e9 + used,
        extra={
            "rootfs_used_bytes": float((50 + used) * GIB),
            "rootfs_inodes_used": 1000.0 + used,
        },
    )
    return PodReading(pod=of, containers=(container,))


def idle(of: Pod) -> PodReading:
    """Next to nothing of everything."""
    container = ContainerReading(
        name="main",
        cpu_usage_cores=0.1,
        cpu_sys_cores=0.01,
        load1=0.1,
        memory_usage_bytes=1,
        memory_rss_bytes=1,
        memory_numa=(GroupNuma(numa=0, anon_bytes=1),),
        memory_pressure=Stall(),
        runnable_tasks=0,
        disk_write_bytes_per_s=0.0,
        extra={"rootfs_used_bytes": 1.0, "rootfs_inodes_used": 1.0},
    )
    return PodReading(pod=of, containers=(container,))


def sample(readings: list[PodReading], *, low: bool, step: int = 0) -> NodeSample:
    free = 0 if low else 50 * GIB
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
        memory_pressure=Stall(some_avg10_percent=90 if low else 0),
        cpu_pressure=Stall(some_avg10_percent=90 if low else 0),
        io_pressure=Stall(some_avg10_percent=90 if low else 0, full_avg10_percent=90 if low else 0),
        runnable_tasks=9000 if low else 1,
        load1=9000.0 if low else 1.0,
        cpu_usage_cores=48.0 if low else 0.0,
        cpus=CpuUsage(cpus="0-47", busy_percent=(100 if low else 0,) * 48),
        extra=extra,
    )
    numa = NumaReading(
        numa=0,
        cpus="0-47",
        memory_total_bytes=TOTAL_BYTES,
        memory_free_bytes=free,
        inactive_file_bytes=10 * GIB,
        watermark_min_bytes=GIB,
        watermark_low_bytes=2 * GIB,
    )
    pools = (PoolReading(pool="reclaim", cpu_usage_cores=0.001 if low else 4.0),)
    return NodeSample(**ENVELOPE, seq=1, node_reading=node, numas=(numa,), pods=tuple(readings), pools=pools)


def view(readings: list[PodReading], *, low: bool, t_s: float = 0.0, step: int = 0) -> View:
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


def shown(plugin: Plugin[Any, Any, Any], settings: PluginSettings, views: list[View]) -> list[Any]:
    """What a plugin says of one view after the other."""
    memory, findings = plugin.start(), []
    for one in views:
        memory, finding = plugin.evaluate(memory, one, settings)
        findings.append(finding)
    return findings


def pressed_views(readings: list[PodReading]) -> list[View]:
    """The same shortage for minutes."""
    return [view(readings, low=True, t_s=STEP_S * step, step=step) for step in range(STEPS)]


def pressed(section: str, readings: list[PodReading]) -> tuple[Pressure | None, View]:
    """What a plugin sees at the end of them."""
    views = pressed_views(readings)
    finding = shown(PLUGINS[section], settings_of(section), views)[-1]
    return (finding if isinstance(finding, Pressure) else None), views[-1]


def at(one: View, t_s: float) -> View:
    return replace(one, t_s=t_s)
