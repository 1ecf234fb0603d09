"""Pod lists say which pods' groups exist, and list a home only where its folder may have changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.writes.present import Members
from shared.adapters.host.cgroup import Cgroups

LIST_AGAIN_S = 2.0
"""Seconds between two listings of a folder even if the number of its groups is the same, because one may have replaced
another (docs/facts/linux-cgroups.md#how-many-groups-lie-in-a-group)."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """The groups of one home, and by which signs they were listed."""

    inodes: Mapping[str, int]
    mark: object
    at_s: float


@dataclass(slots=True)
class PodLists:
    """The lists of these homes. Times are monotonic seconds."""

    cgroups: Cgroups
    homes: Sequence[str]
    _listed: dict[str, _Listed] = field(default_factory=dict)

    def members(self, now_s: float | None = None) -> Members:
        """Return the groups of each home, each with its inode; as listed within the last two seconds where the home
        has as many as then. None: all are listed."""
        return tuple(self._inodes(home, now_s) for home in self.homes)

    def _inodes(self, home: str, now_s: float | None) -> Mapping[str, int]:
        # Before the list: what changes in between makes the next mark another one.
        last, mark = self._listed.get(home), self.cgroups.mark(home)
        fresh = last is not None and now_s is not None and last.at_s <= now_s < last.at_s + LIST_AGAIN_S
        if last is not None and fresh and mark is not None and mark == last.mark:
            return last.inodes
        found = self.cgroups.inodes(home)
        # The very same lists as long as they say the same: they are compared in each look.
        inodes = last.inodes if last is not None and last.inodes == found else found
        at_s = float("-inf") if now_s is None else now_s
        self._listed[home] = _Listed(inodes, mark, at_s)
        return inodes
