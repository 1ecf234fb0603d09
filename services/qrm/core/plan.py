"""In which order CPU and memory node sets are written, so that every prefix of the list is a safe state.

At every moment, also when the writer dies between two writes (DESIGN section 7 rule 5):

- a parent contains its children: sets are widened from the top down and narrowed from the bottom up;
- no set is empty: a move to a set that shares nothing with the old one goes through the union of both;
- who ranks lower yields first: reclaimed groups shrink before a tenant grows, and grow after the tenants have shrunk,
  so that no CPU is in two pools that was not before and shall not be (a move through the union excepted);
- a tenant never has less than the whole of its old set or the whole of its new one.

Order rules: notes/reliability.md sections 4a (A1, A2) and 6.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from shared.core.cpuset import CpuSet
from shared.core.knobs import Knob, Write

Masks = dict[str, CpuSet]


@dataclass(frozen=True, slots=True)
class Sets:
    """CPUs and memory nodes of one cgroup. An empty set was never configured."""

    cpus: CpuSet
    mems: CpuSet


@dataclass(frozen=True, slots=True)
class Want:
    """What a cgroup shall have. Groups below that are not named themselves follow it.

    `rank` says who yields: lower ranks give first and get last. It counts for everything below. None is for a group
    that only holds others: it is widened before and narrowed after all of them.
    """

    sets: Sets
    rank: int | None = None


def goal_sets(
    tree_now: Mapping[str, Sets], wanted: Mapping[str, Want], pinned: Collection[str] = ()
) -> dict[str, Sets]:
    """What every group of the tree shall have in the end; groups that follow nobody are left out.

    `pinned` groups keep what they have (somebody else writes them, or the kernel refuses); the groups above make room
    for them. A set that leaves its parent's is cut down to it, or becomes the parent's where nothing would remain.
    """
    cpus = _goals(tree_now, wanted, pinned, lambda sets: sets.cpus)
    mems = _goals(tree_now, wanted, pinned, lambda sets: sets.mems)
    return {group: Sets(cpus[group], mems[group]) for group in cpus}


def plan_writes(tree_now: Mapping[str, Sets], wanted: Mapping[str, Want], pinned: Collection[str] = ()) -> list[Write]:
    """The writes that bring the tree to what is wanted, in a safe order; none where everything is as it should be.

    `tree_now` holds every group that exists, whatever its level: what the kernel says now, not what is remembered.
    """
    goal = goal_sets(tree_now, wanted, pinned)
    ranks = {group: _rank(group, wanted) for group in goal}
    mems = _Plan(Knob.MEMS, {g: tree_now[g].mems for g in goal}, {g: s.mems for g, s in goal.items()}, ranks)
    cpus = _Plan(Knob.CPUS, {g: tree_now[g].cpus for g in goal}, {g: s.cpus for g, s in goal.items()}, ranks)
    return mems.writes() + cpus.writes()


def _parent(group: str) -> str:
    return group.rpartition("/")[0]


def _top_down(groups: Iterable[str]) -> list[str]:
    return sorted(groups, key=lambda group: (group.count("/"), group))


def _lineage(group: str) -> list[str]:
    """The group and everything above it, nearest first."""
    parts = group.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]


def _rank(group: str, wanted: Mapping[str, Want]) -> int | None:
    ranks = [wanted[name].rank for name in _lineage(group) if name in wanted]
    return next((rank for rank in reversed(ranks) if rank is not None), None)


def _goals(
    tree_now: Mapping[str, Sets],
    wanted: Mapping[str, Want],
    pinned: Collection[str],
    part: Callable[[Sets], CpuSet],
) -> Masks:
    goal: Masks = {}
    for group in _top_down(tree_now):
        model = next((name for name in _lineage(group) if name in wanted), None)
        if model is not None:
            goal[group] = part(wanted[model].sets)
    held = {group: part(tree_now[group]) for group in pinned if group in goal and part(tree_now[group])}
    for group, kept in held.items():
        for above in _lineage(group):
            if above in goal and above not in held:
                goal[above] |= kept
    for group in goal:  # parents come first
        limit = goal.get(_parent(group))
        goal[group] = held.get(group) or (goal[group] if limit is None else (goal[group] & limit) or limit)
    return goal


class _Plan:
    """The writes of one knob. `here` is the state after the writes so far."""

    def __init__(self, knob: Knob, now: Masks, goal: Masks, ranks: Mapping[str, int | None]) -> None:
        self._knob, self._goal = knob, goal
        self._here = dict(now)
        self._ranks = ranks
        self._writes: list[Write] = []

    def writes(self) -> list[Write]:
        holders = self._ranked(None)
        for group in holders:
            self._step(group, self._here[group] | self._goal[group])
        ranks = sorted({rank for rank in self._ranks.values() if rank is not None})
        for rank in ranks[:-1]:
            self._shift(self._yielded(self._ranked(rank)))
        for rank in reversed(ranks):
            self._shift({group: self._goal[group] for group in self._ranked(rank)})
        for group in reversed(holders):
            self._step(group, self._goal[group])
        return self._writes

    def _ranked(self, rank: int | None) -> list[str]:
        return _top_down(group for group, own in self._ranks.items() if own == rank)

    def _yielded(self, groups: list[str]) -> Masks:
        """What lower ranks keep until all others have moved: old and new set together, as far as that is possible."""
        kept: Masks = {}
        for group in groups:
            here, goal = self._here[group], self._goal[group]
            above = kept.get(_parent(group))
            if not here or above is None:
                kept[group] = (here & goal) or here
            else:
                kept[group] = (here & goal & above) or (goal & above) or (here & above) or above
        return kept

    def _shift(self, target: Masks) -> None:
        """From one consistent state of a subtree to another: all wide from the top, then all narrow from the bottom."""
        for group, wanted in target.items():
            self._step(group, self._here[group] | wanted)
        for group, wanted in reversed(target.items()):
            self._step(group, wanted)

    def _step(self, group: str, value: CpuSet) -> None:
        if value and value != self._here[group]:
            self._writes.append(Write(group, self._knob, str(value)))
            self._here[group] = value
