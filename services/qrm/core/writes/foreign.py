"""Detects and names a foreign writer of our cgroups; qrm then leaves the cgroup alone.

Facts: docs/facts/linux-cgroups.md#other-writers.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.qrm.core.writes.plan import Sets

CONFLICTS = 3
WINDOW_S = 300.0


@dataclass(slots=True)
class ForeignWatch:
    """Remembers what qrm wrote, and how often it was found changed. Times are monotonic seconds."""

    _written: dict[str, Sets] = field(default_factory=dict)
    _conflicts: dict[str, deque[float]] = field(default_factory=dict)

    def found(self, tree: Mapping[str, Sets], now_s: float) -> None:
        """Count a conflict for each group that, before a pass, no longer has what was written."""
        for group, sets in self._written.items():
            if group in tree and tree[group] != sets:
                # Only the newest three are of interest: whether they lie within the window.
                self._conflicts.setdefault(group, deque(maxlen=CONFLICTS)).append(now_s)

    def left(self, tree: Mapping[str, Sets], goal: Mapping[str, Sets], now_s: float) -> None:
        """Remember the groups that are as wanted after a pass: the next pass should find them so."""
        # Groups that are left alone are expected to change; otherwise a foreign group would stay foreign forever.
        ours = goal.keys() - self.foreign(now_s)
        self._written = {group: sets for group, sets in tree.items() if group in ours and goal[group] == sets}
        # A group that is gone takes its history along; pods come and go, and the table must not grow.
        self._conflicts = {group: times for group, times in self._conflicts.items() if group in tree}

    def foreign(self, now_s: float) -> frozenset[str]:
        """Return the groups that were changed three times within five minutes; they are left alone until that is
        past."""
        return frozenset(
            group
            for group, times in self._conflicts.items()
            if len(times) == CONFLICTS and now_s - times[0] <= WINDOW_S
        )

    def forget_written(self) -> None:
        """The sets have changed for a known reason (CPUs went offline, the watchdog applied the floor)."""
        self._written.clear()
