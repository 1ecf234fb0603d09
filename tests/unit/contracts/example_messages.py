"""One full example of every message: every field has a value."""

from datetime import UTC, datetime
from typing import Any

from example_cluster_messages import (
    cpu_watch,
    decision,
    heard_round,
    node_cpus,
    node_offer,
    pod_figures,
    service_profiles,
)

from shared.contracts.advice import CacheDrop, PoolAdvice, PoolSize
from shared.contracts.allocation import Allocation, Condition, NumaOffer, PodAllocation, PoolAllocation
from shared.contracts.envelope import Message, Reason
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.pod import Container, Pod
from shared.contracts.readiness import ConfigRefusal, Health, Readiness, ServiceHealth
from shared.contracts.sample import (
    ApplicationReading,
    ContainerReading,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
    Pressure,
)

ENVELOPE: dict[str, Any] = {
    "node": "ip-10-0-0-1.ec2.internal",
    "boot_id": "0123456789abcdef",
    "seq": 7,
    "sent_at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "config_rev": 3,
    "based_on": ("sample/812",),
}
WHY = (Reason(rule="floor", numbers={"load": 1.5, "cpus": 8, "name": "x", "held": True, "last": None}),)
FACTS: dict[str, Any] = {
    "intent_id": "6f0c0d9e-6a0c-5c3b-9f0e-2d7a5c1b8e44",
    "namespace": "team-a",
    "pod": "encode",
    "pod_uid": "1f3a-5b",
    "qos": "reclaimed_cores",
    "plugin": "reclaimed",
    "scope": "node",
    "observed": 5.5,
    "threshold": 5.0,
    "grace_s": 30.0,
    "mode": "enforce",
}
PRESSURE = Pressure(some_avg10_percent=1.0, some_avg60_percent=2.0, full_avg10_percent=3.0)
GROUP: dict[str, Any] = {
    "cpu_usage_cores": 1.5, "load1": 1.0, "load5": 2.0, "runnable_tasks": 3, "throttled_ratio": 0.5,
    "memory_usage_bytes": 4, "memory_rss_bytes": 3, "memory_cache_bytes": 1, "memory_working_set_bytes": 3,
    "cpu_pressure": PRESSURE, "memory_pressure": PRESSURE, "extra": {"cpi": 1.1},
}  # fmt: skip
POD = Pod(
    uid="1f3a-5b", namespace="team-a", name="encode", qos="reclaimed_cores", priority=5, grace_s=10.0, terminating=True,
    containers=(Container(name="main", cpu_request_millis=1, cpu_limit_millis=2, memory_request_bytes=3,
                          memory_limit_bytes=4),),
    annotations={"a": "b"}, labels={"c": "d"}, phase="Running",
)  # fmt: skip
READING = NodeReading(
    online_cpus="0-3", cpu_usage_cores=1.0, load1=1.0, load5=1.0, runnable_tasks=1, memory_total_bytes=9,
    memory_free_bytes=5, memory_available_bytes=6, watermark_scale_factor=10, kswapd_steal_pages=1,
    cpu_pressure=PRESSURE, memory_pressure=PRESSURE, io_pressure=PRESSURE, extra={"x": 1.0},
)  # fmt: skip
HEALTH = ServiceHealth(
    service="qrm",
    ok=False,
    why="no fresh advice",
    input_age_s=12.5,
    config_revision=11,
    config_refused=ConfigRefusal(revision=12, why="qrm.lease_s = -1"),
)

EXAMPLES: dict[str, Message] = {
    message.__class__.__name__: message
    for message in (
        NodeSample(
            **ENVELOPE, window_s=2.0, trigger="psi", figure_ages_s={"load1": 4.0}, pods_left_out=0,
            node_reading=READING, counters_unmeasured="",
            numas=(NumaReading(numa=0, cpus="0-1", memory_total_bytes=9, memory_free_bytes=5, inactive_file_bytes=1,
                               extra={"x": 1.0}),),
            pools=(PoolReading(pool="shared_cores", **GROUP),),
            pods=(PodReading(pod=POD, containers=(ContainerReading(name="main", **GROUP),)),),
            host_applications=(ApplicationReading(name="yarn", qos="BE", priority="koord-batch", pool="reclaim",
                                                  unmeasured="", **GROUP),),
        ),
        PoolAdvice(
            **ENVELOPE, policy="canonical", mode="enforce",
            pools=(PoolSize(pool="batch", cpus=8, numa=0, of_pods=True),), overlap=True,
            reclaimed_cpu_millis=44000, reclaimed_memory_bytes=195257901056, reclaimed_memory_limit_bytes=1,
            reclaimed_quota_millis=9000, oversold_ratio=1.2, drop_cache=(CacheDrop(uid="1f3a-5b", bytes=1),),
            valid_for_s=10.0, required_cores=6.5, why=WHY,
        ),
        Allocation(
            **ENVELOPE, status="applied", mode="enforce",
            pools=(PoolAllocation(pool="share", cpus="0-3", mems="0", memory_limit_bytes=5),),
            pods=(PodAllocation(uid="1f3a-5b", namespace="team-a", name="encode", pool="reclaim", cpus="4-7",
                                mems="0-1"),),
            reclaimed_cpu_millis=4000, reclaimed_memory_bytes=5, lease_left_s=9.0, applied_in_s=0.1,
            reclaimed_numas=(NumaOffer(numa=0, reclaimed_cpu_millis=4000),),
            idle_class=True, conditions=(Condition(type="Foreign", message="x"),), why=WHY,
        ),
        Health(**ENVELOPE, health=HEALTH),
        Readiness(**ENVELOPE, ready=False, mode="observe", services=(HEALTH,)),
        node_offer(ENVELOPE),
        decision(ENVELOPE),
        pod_figures(ENVELOPE),
        service_profiles(ENVELOPE),
        heard_round(ENVELOPE),
        cpu_watch(ENVELOPE),
        node_cpus(ENVELOPE),
        EvictionIntent(**ENVELOPE, **FACTS, episode=1, epoch=2, deadline_s=60.0, why=WHY),
        EvictionEvent(**ENVELOPE, **FACTS, phase="created", attempt=2, message="evicted", detail="x"),
    )
}  # fmt: skip

assert isinstance(EXAMPLES["EvictionEvent"], EvictionEvent)
assert isinstance(EXAMPLES["EvictionIntent"], EvictionIntent)
EVENT, INTENT = EXAMPLES["EvictionEvent"], EXAMPLES["EvictionIntent"]
