from datetime import UTC, datetime
from typing import Any

import pytest
from fixture_types import NewAllocation, NewSample

from shared.contracts.allocation import Allocation, Condition, PodAllocation, PoolAllocation
from shared.contracts.pod import Container, Pod
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeReading, NodeSample, NumaReading, PodReading, PoolReading

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
ENVELOPE = {"node": "node1", "boot_id": "0" * 16, "sent_at": NOW}

WEB = Pod(
    uid="aa",
    name="shared-normal-pod",
    containers=(Container(name="stress", cpu_request_millis=2000, memory_request_bytes=1 << 30),),
)
BATCH = Pod(
    uid="bb",
    name="reclaimed-normal-pod",
    qos="reclaimed_cores",
    containers=(Container(name="stress", cpu_request_millis=2000, memory_request_bytes=1 << 30),),
)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def allocation() -> NewAllocation:
    """The quick start's machine with one pod of each class, after the first load step."""

    def make(**over: Any) -> Allocation:
        fields = {
            "seq": 7,
            "status": "applied",
            "reclaimed_cpu_millis": 42_000,
            "reclaimed_memory_bytes": 195_257_901_056,
            "pools": (
                PoolAllocation(pool="reserve", cpus="0,24"),
                PoolAllocation(pool="share", cpus="11,22-23,35,46-47"),
                PoolAllocation(pool="reclaim", cpus="1-10,12-21,25-34,36-45"),
            ),
            "pods": (
                PodAllocation(uid="aa", namespace="default", name=WEB.name, pool="share", cpus="11,35"),
                PodAllocation(uid="bb", namespace="default", name=BATCH.name, pool="reclaim", cpus="1-10,12-21"),
            ),
            "conditions": (Condition(type="SmallMachine", message="pools overlap"),),
        }
        return Allocation(**ENVELOPE | fields | over)

    return make


@pytest.fixture
def sample() -> NewSample:
    """48 CPUs in two sockets, everything readable."""

    def make(**over: Any) -> NodeSample:
        fields = {
            "seq": 12,
            "node_reading": NodeReading(
                online_cpus="0-47",
                cpu_usage_cores=2.25,
                memory_total_bytes=200_626_610_176,
                memory_available_bytes=200_000_000_000,
            ),
            "numas": (
                NumaReading(
                    numa=1,
                    cpus="12-23,36-47",
                    memory_total_bytes=100_313_305_088,
                    memory_free_bytes=100_000_000_000,
                    extra={"socket": 1.0},
                ),
                NumaReading(
                    numa=0,
                    cpus="0-11,24-35",
                    memory_total_bytes=100_313_305_088,
                    memory_free_bytes=99_000_000_000,
                    extra={"socket": 0.0},
                ),
            ),
            "pools": (
                PoolReading(pool="share", cpu_usage_cores=1.0, memory_usage_bytes=1 << 20),
                PoolReading(pool="reclaim", cpu_usage_cores=1.25, memory_working_set_bytes=1 << 21),
            ),
            "pods": (PodReading(pod=WEB), PodReading(pod=BATCH)),
        }
        return NodeSample(**ENVELOPE | fields | over)

    return make


@pytest.fixture
def services() -> tuple[ServiceHealth, ...]:
    return (ServiceHealth(service="metrics", ok=True), ServiceHealth(service="qrm", ok=True))
