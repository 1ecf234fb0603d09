"""Somebody else writes our cgroups: notice it, name the cgroup, do not fight.

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
    """Remembers what was written where, and how often it was found changed. Times are monotonic seconds."""

    _written: dict[str, Sets] = field(default_factory=dict)
    _conflicts: dict[str, deque[float]] = field(default_factory=dict)

    def found(self, tree: Mapping[str, Sets], now_s: float) -> None:
        """The tree before a pass: each group that no longer has what was written counts one conflict."""
        for group, sets in self._written.items():
            if group in tree and tree[group] != sets:
                self._conflicts.setdefault(group, deque(maxlen=CONFLICTS)).append(now_s)

    def left(self, tree: Mapping[str, Sets], goal: Mapping[str, Sets], now_s: float) -> None:
        """The tree after a pass: where it is as wanted, it shall be found so the next time."""
        ours = goal.keys() - self.foreign(now_s)
        self._written = {group: sets for group, sets in tree.items() if group in ours and goal[group] == sets}
        self._conflicts = {group: times for group, times in self._conflicts.items() if group in tree}

    def foreign(self, now_s: float) -> frozenset[str]:
        """Groups that were changed three times within five minutes: they are left alone until that is past."""
        return frozenset(
            group
            for group, times in self._conflicts.items()
            if len(times) == CONFLICTS and now_s - times[0] <= WINDOW_S
        )

    def forget_written(self) -> None:
        """The sets have changed for a known reason (CPUs went offline, the watchdog applied the floor)."""
        self._written.clear()
