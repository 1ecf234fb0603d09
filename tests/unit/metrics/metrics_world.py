"""The metrics service over a host of functions of time: what the host does is what a test says from now on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from services.metrics.adapters.tripwire import UNSEEN_NS
from services.metrics.app import MetricsApp
from services.metrics.core.figures.figure import Gauge, OfferedFigures, OffersByKind, Rate
from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.target import NODE, TENANTS, Target
from services.metrics.core.figures.values import CpuTicks, Value
from services.metrics.ports import Collected, MetricsPorts
from services.metrics.settings import MetricsSettings
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.contracts.bus.subjects import state_subject
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.settings import CommonSettings, section
from shared.wire import Wire

GIB = 1 << 30
TOTAL = 10 * GIB
USAGE = Rate("cpu_usage_cores", of="cpu_usage_ns", scale=1e-9)
POD = Pod(uid="aa", name="web", containers=(Container(name="main"),))
CONTAINER = Target("container", "aa/main", "g")


class Host:
    """Collector, tripwire, pod source and alarm in one: cores and free memory are what a test says from now on."""

    offered: OffersByKind = {
        "node": {"all": OfferedFigures.of([Gauge(n) for n in ("online_cpus", "memory_total_bytes", "memory_free_bytes",
                                                     "watermark_scale_factor")] + [USAGE])},
        "pool": {"all": OfferedFigures.of([USAGE])},
        "container": {"all": OfferedFigures.of([USAGE])},
    }  # fmt: skip

    def __init__(self, clock: LoopClock) -> None:
        self.clock = clock
        self.cores, self.free, self.number = 0.5, 5 * GIB, 1
        self.listed: Sequence[Pod] | None = [POD]
        self.used_ns, self.since_s = 1e12, 0.0
        self.failing: str | None = None
        self.failures: dict[str, str] | None = None
        self.failed_passes = 0
        self.listings = self.looks = self.node_ns = 0
        self.probing: Callable[[], tuple[int, int]] = self.counted
        self.wake: Callable[[], None] = lambda: None
        self.stood_ns: int | None = None
        self.closed = self.whole = False
        self.armed: Sequence[str] = ()

    def load(self, cores: float) -> None:
        self.used_ns, self.since_s, self.cores = self.usage_ns, self.clock.monotonic(), cores

    @property
    def usage_ns(self) -> int:
        return int(self.used_ns + self.cores * 1e9 * (self.clock.monotonic() - self.since_s))

    def collect(self, pods: Sequence[Pod], applications: Sequence[Target] = (), *, whole: bool = False) -> Collected:
        self.whole = whole
        if self.failing:
            self.failed_passes += 1
            raise OSError(self.failing)
        now_s = self.clock.monotonic()
        node: dict[str, Value | CpuTicks] = {
            "online_cpus": "0-3",
            "memory_total_bytes": TOTAL,
            "memory_free_bytes": self.free,
            "watermark_scale_factor": 10,
            "cpu_usage_ns": self.node_ns,
        }
        usage = {"cpu_usage_ns": self.usage_ns}
        readings = {
            target: TargetReading(now_s, {"all": SourceReading(now_s, usage)}, 1) for target in (TENANTS, CONTAINER)
        }
        return Collected(
            {NODE: TargetReading(now_s, {"all": SourceReading(now_s, node)}), **readings}, self.failures or {}
        )

    def probe(self) -> tuple[int, int]:
        return self.probing()

    def counted(self) -> tuple[int, int]:
        self.looks += 1
        return self.usage_ns, self.free

    def standing(self) -> tuple[int, int]:
        """As the tripwire of a node on which hardly anything moves: its last sum of the tenants stands."""
        if self.stood_ns is None or self.usage_ns - self.stood_ns >= UNSEEN_NS:
            self.stood_ns = self.usage_ns
        return self.stood_ns, self.free

    def forget(self) -> None:
        self.stood_ns = None

    def pods(self) -> Sequence[Pod]:
        self.listings += 1
        if self.listed is None:
            raise Unavailable("the list of pods is torn")
        return self.listed

    def generation(self) -> int:
        return self.number

    def show(self, sample: NodeSample, *, missing: int, failing: int) -> None:
        self.shown = (sample.seq, missing, failing)

    def arm(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def close(self) -> None:
        self.closed = True


class Service:
    """The app, its host, and the samples it sends with the time they came at."""

    def __init__(self, settings: dict[str, Any] | None = None) -> None:
        self.clock, self.bus = LoopClock(), MemoryBus()
        self.host = Host(self.clock)
        wire = Wire(self.bus, self.clock, node="node1", service="metrics")
        raw = {"metrics": settings or {}}
        context = Context(wire, self.clock, CommonSettings(), raw)
        ports = MetricsPorts(
            pods=self.host, collector=self.host, tripwire=self.host, alarm=self.host,
            show=self.host,
        )  # fmt: skip
        self.app = MetricsApp(context, ports, section(MetricsSettings, raw, "metrics"))
        self.samples: list[tuple[float, NodeSample]] = []

    @property
    def said(self) -> list[tuple[float, str]]:
        """Moment and trigger of every sample."""
        return [(round(at_s, 2), sample.trigger) for at_s, sample in self.samples]

    @property
    def last(self) -> NodeSample:
        return self.samples[-1][1]

    def since(self, start_s: float) -> list[tuple[float, str]]:
        return [(round(at_s - start_s, 2), trigger) for at_s, trigger in self.said if at_s >= start_s]


@contextlib.asynccontextmanager
async def running(settings: dict[str, Any] | None = None) -> AsyncIterator[Service]:
    service = Service(settings)

    def keep(received: Received) -> None:
        service.samples.append((service.clock.monotonic(), NodeSample.decode(received.data)))

    await service.bus.subscribe(state_subject(NodeSample, "node1"), keep)
    task = asyncio.create_task(service.app.run())
    try:
        yield service
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await service.app.close()


Story = Callable[[Service], Awaitable[None]]
Scene = Callable[..., None]
"""Plays a story over a running service in virtual time."""
