"""Decides which tasks run where and how much, and advances counters. Pure: no file, no clock.

A small model of the kernel's scheduler, exact where Sublet's figures depend on it: a container never exceeds its CPU
set, its limit or its number of runnable threads, and idle-class work gets only what no other task wants.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shared.core.cpus.cpuset import CpuSet

PERIOD_S = 0.1  # of the CPU bandwidth controller: one chance in 100 ms to be throttled
_ENOUGH = 1e-9
_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class ContainerDemand:
    """What one container would use. `limit_cores` None: no limit. `idle`: runs only where nobody else wants to."""

    group: str
    threads: float
    cpus: CpuSet
    limit_cores: float | None = None
    idle: bool = False

    @property
    def most_cores(self) -> float:
        """An upper bound on what it can get on an empty machine."""
        bound = float(min(self.threads, len(self.cpus)))
        return bound if self.limit_cores is None else min(bound, self.limit_cores)

    @property
    def limited(self) -> bool:
        """Whether its limit is what holds it back: then it is throttled in every period."""
        return self.limit_cores is not None and self.limit_cores < min(self.threads, len(self.cpus))


@dataclass(frozen=True, slots=True)
class Shares:
    """Cores granted to each container, and how busy each CPU is (0 to 1)."""

    cores: Mapping[str, float]
    busy: Mapping[int, float]


def share_cpus(wants: Sequence[ContainerDemand], online: CpuSet) -> Shares:
    """Share the online CPUs: normal work first, idle-class work on the rest; fair within each class."""
    left = dict.fromkeys(online, 1.0)
    cores: dict[str, float] = {}
    ordered = sorted(wants, key=lambda want: want.group)
    for idle in (False, True):
        cores |= _fill([want for want in ordered if want.idle is idle], left)
    return Shares(cores, {cpu: 1.0 - rest for cpu, rest in left.items()})


def _fill(wants: Sequence[ContainerDemand], left: dict[int, float]) -> dict[str, float]:
    """Fill in rounds: each asks where there is room, in proportion to it; a CPU asked for too much is cut evenly."""
    got = dict.fromkeys((want.group for want in wants), 0.0)
    for _ in range(_ROUNDS):
        asked = [(want.group, _spread(want, got[want.group], left)) for want in wants]
        total: dict[int, float] = dict.fromkeys(left, 0.0)
        for _, parts in asked:
            for cpu, part in parts.items():
                total[cpu] += part
        moved = 0.0
        room = dict(left)
        for group, parts in asked:
            for cpu, part in parts.items():
                granted = part * min(1.0, room[cpu] / total[cpu])
                got[group] += granted
                left[cpu] = max(0.0, left[cpu] - granted)
                moved += granted
        if moved < _ENOUGH:
            break
    return got


def _spread(want: ContainerDemand, got: float, left: Mapping[int, float]) -> dict[int, float]:
    need = want.most_cores - got
    rooms = {cpu: left[cpu] for cpu in want.cpus if left.get(cpu, 0.0) > _ENOUGH}
    if need <= _ENOUGH or not rooms:
        return {}
    whole = sum(rooms.values())
    return {cpu: need * room / whole for cpu, room in rooms.items()}


def damp(before: float, now: float, step_s: float, window_s: float) -> float:
    """The kernel's damped average (load, PSI): what was, fading over the window, and what is."""
    keep = math.exp(-step_s / window_s)
    return before * keep + now * (1.0 - keep)


@dataclass(slots=True)
class Stall:
    """One line of a PSI file: shares of time in percent over three windows, and the total in microseconds."""

    avg10: float = 0.0
    avg60: float = 0.0
    avg300: float = 0.0
    total_us: float = 0.0

    def advance(self, share: float, step_s: float) -> None:
        """Let `share` (0 to 1) of the next `step_s` seconds be stalled."""
        self.avg10 = damp(self.avg10, share * 100, step_s, 10)
        self.avg60 = damp(self.avg60, share * 100, step_s, 60)
        self.avg300 = damp(self.avg300, share * 100, step_s, 300)
        self.total_us += share * step_s * 1e6


@dataclass(slots=True)
class Counters:
    """The counters of one cgroup; they only ascend, except memory, which is what is held now."""

    cpu_s: float = 0.0
    periods: float = 0.0
    throttled_periods: float = 0.0
    throttled_s: float = 0.0
    memory_bytes: int = 0
    stall: Stall = field(default_factory=Stall)

    def advance(self, *, cores: float, waiting: float, limited: bool, has_limit: bool, step_s: float) -> None:
        """Let `step_s` seconds pass with so many cores used and so many runnable threads waiting."""
        self.cpu_s += cores * step_s
        self.stall.advance(1.0 if waiting > _ENOUGH else 0.0, step_s)
        if has_limit:
            self.periods += step_s / PERIOD_S
        if limited:
            self.throttled_periods += step_s / PERIOD_S
            self.throttled_s += waiting * step_s


def out_of_memory(used: Mapping[str, int], limits: Mapping[str, int]) -> list[str]:
    """Which containers the kernel kills: in every group above its limit the largest, then the next, until it fits.

    `used` holds bytes by container, `limits` bytes by any group; a container belongs to every group that is a prefix
    of its path. Deeper groups are judged first; ties end with the name.
    """
    alive = dict(used)
    killed: list[str] = []
    for group in sorted(limits, key=lambda name: (-name.count("/"), name)):
        members = [name for name in alive if name == group or name.startswith(f"{group}/")]
        for victim in sorted(members, key=lambda name: (-alive[name], name)):
            if sum(alive[name] for name in members if name in alive) <= limits[group]:
                break
            killed.append(victim)
            del alive[victim]
    return killed


def ancestors(group: str) -> Iterable[str]:
    """The group itself and everything above it, down to the root, which is the empty name."""
    parts = group.split("/")
    for depth in range(len(parts), 0, -1):
        yield "/".join(parts[:depth])
    yield ""
