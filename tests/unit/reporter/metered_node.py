"""A node whose samples a test sends, in virtual time, and the API server that its NodeMetric is written to."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fixture_types import Virtual

from services.reporter.core.mid.reclaimable import ProdReclaimable
from services.reporter.reports.node_metric import NodeMetricReport
from services.reporter.settings import NodeMetricSettings, ReporterSettings
from shared.adapters.clock import LoopClock
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.api_kind import NODE_METRICS, ApiKind
from shared.core.node_mode import NodeSwitch
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.wire import Newest, Wire

GIB = 1 << 30
ON = ReporterSettings(node_metric=NodeMetricSettings(enabled=True))


class NodeMetricServer(MemoryObjects):
    """An API server that notes who has written the time of a status."""

    def put(self, kind: ApiKind, document: Mapping[str, Any], *, manager: str = "koordlet") -> dict[str, Any]:
        return super().put(kind, self._noted(document, manager))

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> dict[str, Any]:
        await super().apply(kind, document, manager=manager, status=status)
        return super().put(kind, self._noted(self.documents[kind, "", document["metadata"]["name"]], manager))

    @staticmethod
    def _noted(document: Mapping[str, Any], manager: str) -> Mapping[str, Any]:
        if not document.get("status"):
            return document
        fields: dict[str, Any] = {"f:status": {"f:updateTime": {}}}
        entry = {"manager": manager, "subresource": "status", "fieldsV1": fields}
        return {**document, "metadata": {**document["metadata"], "managedFields": [entry]}}


class Node:
    """A node whose samples the test sends, and the API server that its NodeMetric is written to."""

    def __init__(self, *, settings: ReporterSettings = ON, api: bool = True) -> None:
        self.clock = LoopClock()
        self.api = NodeMetricServer(self.clock)
        self.wire = Wire(MemoryBus(), self.clock, node="node1", service="metrics")
        self.report = NodeMetricReport("node1", self.api if api else None, self.clock, settings, lambda: self.lent)
        self.lent: ProdReclaimable | None = None
        self.switch = NodeSwitch()

    async def measure(self, seconds: int, cores: float = 1.0, **over: Any) -> None:
        """A sample each second."""
        used = ContainerReading(name="c", cpu_usage_cores=0.3, memory_rss_bytes=GIB)
        pod = PodReading(pod=Pod(uid="aa", name="web"), containers=(used,))
        fields: dict[str, Any] = {
            "node_reading": NodeReading(online_cpus="0-9", cpu_usage_cores=cores, memory_total_bytes=10 * GIB,
                                        memory_available_bytes=8 * GIB),
            "pods": (pod,), "window_s": 1.0,
        }  # fmt: skip
        for _ in range(seconds):
            await self.wire.publish(self.wire.stamp(NodeSample, **fields | over))
            await asyncio.sleep(1)

    @property
    def status(self) -> Mapping[str, Any] | None:
        found = self.api.documents.get((NODE_METRICS, "", "node1"))
        return None if found is None else found.get("status")

    @property
    def writes(self) -> int:
        """Of the status, without the making of the object."""
        return sum(1 for verb, *_ in self.api.writes if verb != "create")

    @property
    def said(self) -> dict[str, str]:
        return {condition.type: condition.message for condition in self.report.conditions()}

    @contextlib.asynccontextmanager
    async def running(self) -> Any:
        samples: Newest[NodeSample] = await self.wire.newest(NodeSample)
        task = asyncio.create_task(self.report.run(samples, self.switch))
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


Story = Callable[[Node], Awaitable[None]]
Play = Callable[..., Node]


def player(virtual: Virtual) -> Play:
    """What runs a story, and returns its node."""

    async def run(story: Story, over: Mapping[str, Any]) -> Node:
        async with Node(**over).running() as node:
            await story(node)
            found: Node = node
            return found

    def play(story: Story, **over: Any) -> Node:
        node: Node = virtual(run(story, over))
        return node

    return play
