"""A stage that is not there: its machine is as idle as a test says, and its parts break when a test wants them to."""

from dataclasses import dataclass, field, replace

from sublet.demo.case import DemoCase
from sublet.demo.load import PageResponse
from sublet.demo.machine.fit import CaseNoise, DemoLoads, MachineReading
from sublet.demo.story import DemoEviction
from sublet.demo.watch import PoolChange, TimelineRow

IDLE = MachineReading(
    cpus=2, got_cores=1.97, hash_mb_per_s=900.0, others_cores=0.02, load1=0.1, steal_percent=0.0, pressure_percent=1.0
)
BUSY = replace(IDLE, got_cores=0.6, others_cores=2.0, load1=9.0, pressure_percent=90.0)
P99_MS = {"alone": 12.0, "unmanaged": 350.0, "sublet": 18.0}


def played(case: DemoCase, p99_ms: float | None, narrowed: bool = True) -> None:
    """Fill a case in as if it had been measured: steady for 7 s, a spike of 6 s, then 3 s more."""
    case.started_s, case.spike_s, case.spike_end_s, case.ended_s = 100.0, 107.0, 113.0, 116.0
    case.answers = [PageResponse(100.0 + 0.1 * n, 0.01) for n in range(70)]
    case.answers += [PageResponse(107.0 + 0.1 * n, None if p99_ms is None else p99_ms / 1000) for n in range(60)]
    case.moments = [TimelineRow(100.0 + n, 1.0, 5.0, 2, 1, 1 << 30) for n in range(16)]
    if narrowed and case.name == "sublet":
        case.changes = [PoolChange(107.2, "0-1", "1")]


@dataclass
class FakeStage:
    """Every part of the story takes no time."""

    readings: list[MachineReading] = field(default_factory=lambda: [IDLE])
    """One after another; the last one stays."""
    p99_ms: dict[str, float | None] = field(default_factory=lambda: dict(P99_MS))
    noise: CaseNoise = field(default_factory=CaseNoise)
    wide: bool = True
    narrowed: bool = True
    eviction: DemoEviction = field(default_factory=lambda: DemoEviction(True, 0.02))
    left: list[str] = field(default_factory=list)
    breaks: dict[str, Exception] = field(default_factory=dict)
    """By part: a case's name, "start", "evict"."""
    calls: list[str] = field(default_factory=list)
    loads: DemoLoads | None = None

    def _part(self, name: str) -> None:
        self.calls.append(name)
        if name in self.breaks:
            raise self.breaks[name]

    async def reading(self) -> MachineReading:
        """Take the next one."""
        self.calls.append("look")
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]

    async def measure(self, case: DemoCase, loads: DemoLoads) -> bool:
        """Fill the case in."""
        self.loads = loads
        self._part(case.name)
        played(case, self.p99_ms[case.name], self.narrowed)
        case.noise = self.noise
        return self.wide

    async def start(self) -> None:
        """Start nothing."""
        self._part("start")

    async def evict(self) -> DemoEviction:
        """Say what a test wants to have seen."""
        self._part("evict")
        return self.eviction

    async def stop(self) -> list[str]:
        """End nothing."""
        self._part("stop")
        return self.left
