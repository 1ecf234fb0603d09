"""Present pods are those that have groups of their own; what these shall have is mostly what it was a pass ago."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.core.placement.arrangement import Arrangement
from services.qrm.core.writes.classes import wanted_groups
from services.qrm.core.writes.plan import Sets, WantedSets
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import Layout
from shared.core.cpus.cpuset import CpuSet

Members = tuple[Mapping[str, int], ...]
"""The pods' groups by home, each with a number that another group of the same name does not have."""


@dataclass(frozen=True, slots=True)
class Present:
    """The pods that have groups and are not pinned, by their group, and what that follows from."""

    pods: Sequence[Pod] = ()
    members: Members = ()
    pinned: Mapping[str, CpuSet] = field(default_factory=dict)
    groups: Mapping[str, Pod] = field(default_factory=dict)
    made: Mapping[str, int] = field(default_factory=dict)
    """The number of each of these groups, as in `members`."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an arrangement means for the existing groups."""

    arrangement: Arrangement
    present: Present
    whole: Sets
    wanted: dict[str, WantedSets]


class WantedGroups:
    """Says which pods have groups and what these shall have, and keeps the last answers: to name the groups of hundreds
    of pods is nearly all that they cost.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._present = Present()
        self._asked: _Asked | None = None

    def present(self, pods: Sequence[Pod], members: Members, pinned: Mapping[str, CpuSet]) -> Present:
        """Return the pods whose groups exist; whoever pinned a pod writes its sets."""
        last, layout = self._present, self._layout
        if pods is not last.pods or (members, pinned) != (last.members, last.pinned):
            homes = zip(layout.homes, members, strict=True)
            there = {f"{home}/{name}": number for home, names in homes for name, number in names.items()}
            named = ((layout.pod_group(pod), pod) for pod in pods)
            groups = {group: pod for group, pod in named if group in there and pod.uid not in pinned}
            self._present = Present(pods, members, pinned, groups, {group: there[group] for group in groups})
        return self._present

    def wanted(self, arrangement: Arrangement, present: Present, whole: Sets) -> dict[str, WantedSets]:
        """Return what every class group must have, and every existing pod group; `whole` is everything."""
        last = self._asked
        if last is None or last.arrangement is not arrangement or last.present is not present or last.whole != whole:
            # If every pod follows its class there is no need to name it, which would cost a read of each group.
            named = list(present.groups.values()) if arrangement.owned or not self._layout.classes else ()
            owned = {**arrangement.owned, **arrangement.starting}
            wanted = wanted_groups(arrangement.pools, whole, self._layout, named, owned)
            last = self._asked = _Asked(arrangement, present, whole, wanted)
        return last.wanted
