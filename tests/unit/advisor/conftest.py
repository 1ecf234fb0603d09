from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from advisor_world import TUTORIAL_NODE, Live, MakeFields, MakePod, MakeSample, Node
from fixture_types import Virtual

from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading, PoolReading
from shared.core.cpus.topology import Topology

TOTAL_BYTES = 195_924_424 << 10
"""Memory of the tutorial's node."""


def _pod(
    name: str, qos: str = "shared_cores", cpu_millis: int = 0, memory_bytes: int = 0, **reading: Any
) -> PodReading:
    """A pod of one container; without a reading its container is not measured."""
    asked = Container(name="main", cpu_request_millis=cpu_millis, memory_request_bytes=memory_bytes)
    fields = {key: reading.pop(key) for key in ("phase", "uid") if key in reading}
    pod = Pod(**{"uid": "0" + "".join(f"{ord(c):x}" for c in name), "name": name, "qos": qos} | fields,
              containers=(asked,))  # fmt: skip
    return PodReading(pod=pod, containers=(ContainerReading(name="main", **reading),) if reading else ())


@pytest.fixture
def pod() -> MakePod:
    return _pod


@pytest.fixture
def fields() -> MakeFields:
    """The fields of a sample of the tutorial's node, without the envelope."""

    def make(*pods: PodReading, node: dict[str, Any] | None = None, **over: Any) -> dict[str, Any]:
        reading = {
            "online_cpus": "0-47",
            "memory_total_bytes": TOTAL_BYTES,
            "memory_available_bytes": TOTAL_BYTES - (1 << 30),
            "watermark_scale_factor": 10,
        }
        pools = (PoolReading(pool="reclaim", memory_usage_bytes=0),)
        return {
            "window_s": 1.0,
            "node_reading": NodeReading(**reading | (node or {})),
            "pools": pools,
            "pods": pods,
        } | over

    return make


@pytest.fixture
def sample(fields: MakeFields) -> MakeSample:
    """A whole sample of the tutorial's node."""
    envelope = {"node": "node1", "boot_id": "0" * 16, "seq": 1, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return lambda *pods, **over: NodeSample(**envelope, **fields(*pods, **over))


@pytest.fixture
def live(virtual: Virtual) -> Live:
    """Run a story with a node: live(story) or live(story, settings, topology)."""

    def run(
        story: Callable[[Node], Awaitable[None]],
        settings: dict[str, Any] | None = None,
        topology: Topology = TUTORIAL_NODE,
    ) -> None:
        async def whole() -> None:
            async with Node(settings or {}, topology).running() as node:
                await story(node)

        virtual(whole())

    return run
