"""Performance counters in memory: what a window counts is what a test says."""

from collections.abc import Mapping, Sequence

from services.metrics.core.counters import NOTHING, Counts


class FakeCounters:
    """Counts each cgroup that it follows as `rates` say, and ends a window in every second pass."""

    def __init__(self, rates: Mapping[str, Counts], failure: str = "") -> None:
        self.rates, self.failure = dict(rates), failure
        self.followed: Sequence[str] = ()
        self.closed = False
        self._window: Sequence[str] | None = None
        self._counts: dict[str, Counts] = {}

    def follow(self, groups: Sequence[str]) -> None:
        self.followed = list(groups)
        if self.failure:
            self._counts = {}
        elif self._window is None:
            self._window = self.followed
        else:
            gone = [group for group in self._window if group not in self.rates]
            if not gone:
                self._counts = {group: self.rates[group] for group in self._window}
            self._window = None

    def counts(self, group: str) -> Counts | None:
        if not self._counts:
            return None
        total = NOTHING
        for counted, own in self._counts.items():
            if counted == group or counted.startswith(f"{group}/"):
                total = total.plus(own)
        return total

    def remove(self, group: str) -> None:
        """The cgroup is gone."""
        del self.rates[group]

    def close(self) -> None:
        self.closed, self._window = True, None
