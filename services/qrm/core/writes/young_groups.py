"""Tells problems of groups that are still being made from those that last.

With the systemd driver a pod's group exists before its controllers are on, and systemd may remove and make it again
while kubelet prepares the pod. What cannot be written then is tried again before it is called a failure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.writes.outcome import Problem
from services.qrm.core.writes.present import Present

TRIES, SPAN_S = 3, 2.0
"""A problem of a young group is pending for so many passes, and for so long: a pass after a stall is only one."""
MAKINGS = 3
"""So often a pod's group may be made anew and count as young; a group without end is a failure."""

Problems = tuple[Problem, ...]


@dataclass(slots=True)
class _Growing:
    """The start of one pod's group."""

    made: int
    """Identifies this making of the group."""
    makings: int = 1
    grown: bool = False
    """Whether a pass found nothing wrong with it, or its tries are used up."""
    tries: int = 0
    since_s: float = 0.0

    def remade(self, made: int) -> None:
        if made != self.made:
            self.made, self.makings, self.tries = made, self.makings + 1, 0
            self.grown = self.makings > MAKINGS

    def fails(self, now_s: float) -> bool:
        """Count one pass with a problem; return whether it is a failure."""
        if not self.tries:
            self.since_s = now_s
        self.tries += 1
        self.grown = self.grown or (self.tries > TRIES and now_s - self.since_s >= SPAN_S)
        return self.grown


@dataclass(slots=True)
class YoungGroups:
    """The starts of the present pods' groups, by UID."""

    _growing: dict[str, _Growing] = field(default_factory=dict)
    _well: Present | None = None
    """The pods of the last pass, if it found nothing wrong: most passes find the same."""

    def judge(self, problems: Sequence[Problem], present: Present, now_s: float) -> tuple[Problems, Problems]:
        """Split a pass's problems into failures and what is pending."""
        if not problems and present is self._well:
            return (), ()
        self._well = None if problems else present
        uids = {group: pod.uid for group, pod in present.groups.items()}
        # Only present pods are kept: a new UID begins anew, and the table does not grow.
        self._growing = {uid: self._of(uid, present.made[group]) for group, uid in uids.items()}
        owners = [_owner(problem, uids) for problem in problems]
        failing = {uid: self._growing[uid].fails(now_s) for uid in dict.fromkeys(owners) if uid is not None}
        for uid in self._growing.keys() - failing.keys():
            self._growing[uid].grown = True
        told = list(zip(problems, owners, strict=True))
        failures = tuple(problem for problem, uid in told if uid is None or failing[uid])
        return failures, tuple(problem for problem, uid in told if uid is not None and not failing[uid])

    def _of(self, uid: str, made: int) -> _Growing:
        growing = self._growing.get(uid)
        if growing is None:
            return _Growing(made)
        growing.remade(made)
        return growing


def _owner(problem: Problem, uids: Mapping[str, str]) -> str | None:
    """Return the pod in whose group a problem is; None: it is in no pod's."""
    return next((uids[group] for group in _upwards(problem.group) if group in uids), None)


def _upwards(group: str) -> Iterable[str]:
    while group:
        yield group
        group = group.rpartition("/")[0]
