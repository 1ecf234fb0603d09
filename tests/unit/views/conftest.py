from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.allocation import Allocation, Condition, PodAllocation, PoolAllocation
from shared.contracts.envelope import Reason
from shared.contracts.eviction import EvictionEvent
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import (
    ContainerReading,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
)

NOW = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
ENVELOPE = {"node": "node1", "boot_id": "0" * 16, "sent_at": NOW}
INTENT = "0" * 8 + "-0000-0000-0000-" + "0" * 12

WEB = Pod(uid="aa", name="web", containers=(Container(name="main", cpu_request_millis=2000),))
ENCODE = Pod(
    uid="bb",
    name="encode",
    qos="reclaimed_cores",
    containers=(Container(name="main", cpu_request_millis=2000, memory_request_bytes=1 << 30),),
)


@pytest.fixture
def answers() -> dict[str, Any]:
    """What the services say after the quick start's first load step, the advisor being silent."""
    sample = NodeSample(
        **ENVELOPE,
        seq=88,
        node_reading=NodeReading(
            online_cpus="0-47",
            cpu_usage_cores=2.5,
            load1=2.75,
            memory_total_bytes=200 << 30,
            memory_available_bytes=190 << 30,
        ),
        numas=(NumaReading(numa=0, cpus="0-11,24-35"), NumaReading(numa=1, cpus="12-23,36-47")),
        pools=(
            PoolReading(pool="share", cpu_usage_cores=1.0, load1=1.05, memory_usage_bytes=1 << 30),
            PoolReading(pool="reclaim", cpu_usage_cores=1.25),
        ),
        pods=(
            PodReading(
                pod=WEB,
                containers=(
                    ContainerReading(name="main", cpu_usage_cores=1.0, load1=1.05, memory_usage_bytes=1 << 30),
                ),
            ),
            PodReading(pod=ENCODE, containers=(ContainerReading(name="main", cpu_usage_cores=1.25),)),
        ),
    )
    advice = PoolAdvice(
        **ENVELOPE,
        seq=7,
        based_on=("sample/88",),
        policy="canonical",
        pools=(PoolSize(pool="share", cpus=6), PoolSize(pool="reclaim", cpus=42)),
        reclaimed_cpu_millis=42_000,
        reclaimed_memory_bytes=180 << 30,
        required_cores=1.05,
        why=(Reason(rule="regulate", numbers={"reserve_cores": 4, "required_cores": 1.05}),),
    )
    allocation = Allocation(
        **ENVELOPE,
        seq=12,
        based_on=("sample/88", "advice/7"),
        status="applied",
        pools=(
            PoolAllocation(pool="share", cpus="11,22-23,35,46-47"),
            PoolAllocation(pool="reclaim", cpus="0-10,12-21,24-34,36-45", memory_limit_bytes=190 << 30),
        ),
        pods=(
            PodAllocation(uid="aa", namespace="default", name="web", pool="share", cpus="11,22-23,35,46-47"),
            PodAllocation(uid="bb", namespace="default", name="encode", pool="reclaim", cpus="0-10,12-21"),
        ),
        reclaimed_cpu_millis=42_000,
        reclaimed_memory_bytes=180 << 30,
        lease_left_s=9.6,
        conditions=(Condition(type="CpuIdleMissing", message="this kernel has no cpu.idle"),),
    )
    intent = {
        "intent_id": INTENT,
        "namespace": "default",
        "pod": "gone",
        "pod_uid": "cc",
        "qos": "reclaimed_cores",
        "plugin": "reclaimed-resource-pressure-eviction-plugin",
        "scope": "katalyst.kubewharf.io/reclaimed_millicpu",
        "observed": 36_000.0,
        "threshold": 20_000.0,
        "grace_s": 30.0,
        "why": [{"rule": "over-commit", "numbers": {"offered": 4000, "threshold": 5.0}}],
    }
    return {
        "metrics": {"sample": sample.model_dump(mode="json")},
        "advisor": None,
        "qrm": {"allocation": allocation.model_dump(mode="json"), "advice": advice.model_dump(mode="json")},
        "evictor": {
            "process": {"version": "0.1.0", "revision": "", "python": "3.11.7", "up_s": 7512.5},
            "evicted_last_hour": 3,
            "conditions": [{"type": "MemoryPressure", "message": "NoSchedule by memory"}],
            "taints": [
                {
                    "key": "node.katalyst.kubewharf.io/MemoryPressure",
                    "effect": "NoSchedule",
                    "timeAdded": "2023-01-09T06:32:08Z",
                    "causes": [{"plugin": "memory", "scope": "memory", "observed": 1024.0, "threshold": 2048.0}],
                },
                {"key": "torn"},
            ],
            "recent": [
                {
                    "step": "succeeded",
                    "detail": "",
                    "attempts": 1,
                    "intent": intent,
                    "calls": [],
                    "events": [{"id": f"{INTENT}/succeeded/1", "published": False, "sequence": None}],
                }
            ],
        },
        "reporter": {
            "ready": False,
            "services": [
                {"service": "metrics", "ok": True, "why": "", "input_age_s": 0.25},
                {"service": "advisor", "ok": False, "why": "silent for more than 10 s"},
                {"service": "qrm", "ok": True, "why": "", "input_age_s": 1.5},
                {"service": "evictor", "ok": False, "why": "no allocation received yet"},
                {"service": "reporter", "ok": True, "why": ""},
            ],
        },
        "central": {
            "health": {"service": "central", "ok": True},
            "nodes": {"ready": 1},
            "config": {"refused": "no section 'evicter'"},
        },
    }


@pytest.fixture
def events() -> list[EvictionEvent]:
    """The first two steps of the eviction of default/gone."""
    texts = {"intended": "Intend to evict", "created": "Successfully create eviction"}
    return [
        EvictionEvent(
            **ENVELOPE | {"sent_at": NOW + timedelta(seconds=step)},
            seq=step + 1,
            intent_id=INTENT,
            namespace="default",
            pod="gone",
            pod_uid="cc",
            qos="reclaimed_cores",
            plugin="reclaimed-resource-pressure-eviction-plugin",
            scope="katalyst.kubewharf.io/reclaimed_millicpu",
            observed=36_000,
            threshold=20_000,
            phase=phase,
            message=text,
        )
        for step, (phase, text) in enumerate(texts.items())
    ]
