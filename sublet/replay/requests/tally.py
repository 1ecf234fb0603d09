"""How long the containers of a workload used more than a bound."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.central.core.recommendation.request import MIB

STEPS = {"cpu": 1, "memory": MIB}
"""Use is counted by the milli-core and the MiB, as recommendations are made: a day of it takes little memory."""
Amounts = Mapping[str, int]
"""By resource: CPU in milli, memory in bytes."""


@dataclass(slots=True)
class UseTally:
    """Seconds of one resource by what was used in them, all pods of the workload added up."""

    step: int
    seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    requested_s: float = 0.0
    """Time in which a request was there."""
    above_request_s: float = 0.0

    def add(self, used: int, requested: int | None, covers_s: float) -> None:
        """Count a time in which so much was used; `requested` is None where nothing was."""
        self.seconds[-(-used // self.step)] += covers_s
        if requested is not None:
            self.requested_s += covers_s
            self.above_request_s += covers_s * (used > requested)

    @property
    def total_s(self) -> float:
        """All of the time."""
        return sum(self.seconds.values())

    @property
    def peak(self) -> int | None:
        """The most that was used, to the step; None: nothing was seen."""
        return max(self.seconds) * self.step if self.seconds else None

    def above_s(self, bound: int) -> float:
        """Time in which more than the bound was used."""
        return sum(time_s for steps, time_s in self.seconds.items() if (steps - 1) * self.step >= bound)


@dataclass(slots=True)
class GivenFigures:
    """Figures of one container as they would have stood in a status, and what was used meanwhile."""

    container: str
    at_s: float
    target: Amounts
    until_s: float | None = None
    """None: they stood until the end."""
    judged_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Time of which the use is known, by resource, all pods added up."""
    above_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    memory_exceeded: int = 0
    """How often a pod began to use more memory: as often it were killed, if the figure were its limit as well."""
    _exceeding: set[str] = field(default_factory=set)

    def add(self, pod_uid: str, used: Amounts, covers_s: float) -> None:
        """Count a time of a pod."""
        known = self.target.keys() & used.keys()
        above = {name for name in known if used[name] > self.target[name]}
        for name in known:
            self.judged_s[name] += covers_s
            self.above_s[name] += covers_s * (name in above)
        if "memory" in above and pod_uid not in self._exceeding:
            self.memory_exceeded += 1
            self._exceeding.add(pod_uid)
        elif "memory" in known - above:
            self._exceeding.discard(pod_uid)
