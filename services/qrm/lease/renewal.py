"""Renewing the lease comes before anything is written: should qrm die in between, the lease already runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.qrm.conditions import Conditions
from services.qrm.core.placement.arrangement import Arrangement
from services.qrm.core.writes.plan import WantedSets
from services.qrm.ports import PodGroups, WatchedLease
from shared.contracts.pod import Pod
from shared.ports import Clock


@dataclass(frozen=True, slots=True)
class _Named:
    """What a floor means for the groups that a mark stands for."""

    floor: Arrangement
    mark: object
    groups: Mapping[str, WantedSets]


class LeaseRenewal:
    """Renews one lease, and remembers which pods it covers and when it was last watched."""

    def __init__(self, lease: WatchedLease, groups: PodGroups, clock: Clock, conditions: Conditions) -> None:
        self._lease, self._groups, self._clock, self._conditions = lease, groups, clock, conditions
        self._named: _Named | None = None
        self.covered: object = None
        """The mark of the pods and groups that the lease on disk names."""
        self.watched_at_s = float("inf")
        """When a watchdog, which ends the lease for qrm, was last known to live; infinite before the first attempt."""

    def renew(self, left_s: float, floor: Arrangement, pods: Sequence[Pod], mark: object) -> bool:
        """Let the lease run for `left_s` seconds; return False if no watchdog would end it.

        `mark` stands for the pods and groups that the floor names.
        """
        now_s = self._clock.monotonic()
        # A first try that fails counts from now: until then nothing was in force that had to be ended.
        self.watched_at_s = min(self.watched_at_s, now_s)
        try:
            # The file before the watchdog: one that starts first would find no lease, and end at once.
            self._lease.renew(left_s, self._groups_of(floor, pods, mark))
            self._lease.ensure_watchdog()
        except OSError as error:
            self._conditions.set("LeaseUnkept", f"{error}; reclaimed limits would outlive qrm")
            return False
        self._conditions.set("LeaseUnkept", "")
        # Only now: a lease that could not be written covers no new group.
        self.covered, self.watched_at_s = mark, now_s
        return True

    def _groups_of(self, floor: Arrangement, pods: Sequence[Pod], mark: object) -> Mapping[str, WantedSets]:
        last = self._named
        # Unchanged between advices, so it is passed on without listing or encoding it again.
        if last is None or mark is None or last.floor is not floor or last.mark != mark:
            last = self._named = _Named(floor, mark, self._groups.wanted(floor, pods))
        return last.groups
