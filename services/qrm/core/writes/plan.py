"""The plan orders the writes of CPU and memory node sets so that every prefix of the list is a safe state.

At every moment, also when the writer dies between two writes:

- a parent contains its children: sets are widened from the top down and narrowed from the bottom up;
- no set is empty: a move to a set that shares nothing with the old one goes through the union of both;
- the lowest rank yields first: reclaimed groups shrink before a tenant grows, and grow after the tenants have shrunk,
  so that no CPU is in two pools that was not before and shall not be (a move through the union excepted, and that one
  goes around the CPUs which a group has, or shall have, for itself);
- a tenant never has less than the whole of its old set or the whole of its new one.

Rule: docs/facts/safety-rules.md#rule-5-a-parent-contains-its-children, docs/facts/linux-cgroups.md#cpu-sets.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from shared.core.cgroups.knobs import Knob, Write
from shared.core.cpus.cpuset import CpuSet

Masks = dict[str, CpuSet]


@dataclass(frozen=True, slots=True)
class Sets:
    """CPUs and memory nodes of one cgroup. An empty set was never configured."""

    cpus: CpuSet
    mems: CpuSet


@dataclass(frozen=True, slots=True)
class WantedSets:
    """The wanted sets of a cgroup. Groups below it that are not named themselves follow it.

    `rank` orders groups by who yields: lower ranks give up CPUs first and receive them last. It applies to everything
    below. None marks a group that only contains others: it is widened before and narrowed after all of them. `own` CPUs
    are for this group alone: the lowest rank is never on one of them, not even on its way to other CPUs, as long as
    there is another way.
    """

    sets: Sets
    rank: int | None = None
    own: bool = False


def goal_sets(
    tree_now: Mapping[str, Sets], wanted: Mapping[str, WantedSets], pinned: Collection[str] = ()
) -> dict[str, Sets]:
    """Return the wanted sets of every group in the tree, without groups that follow no wanted group.

    `pinned` groups keep what they have (another program writes them, or the kernel refuses); the groups above make room
    for them. A set that exceeds its parent's is cut down to it, or becomes the parent's if nothing would remain.
    """
    models = _models(tree_now, wanted)
    cpus, mems = _goals(tree_now, wanted, models, pinned, _cpus), _goals(tree_now, wanted, models, pinned, _mems)
    return {group: Sets(cpus[group], mems[group]) for group in models}


def plan_writes(
    tree_now: Mapping[str, Sets], wanted: Mapping[str, WantedSets], pinned: Collection[str] = ()
) -> list[Write]:
    """Return the writes that bring the tree to what is wanted, in a safe order; empty if everything is as it should
    be.

    `tree_now` holds every existing group at any level: what the kernel says now, not what is remembered.
    """
    models = _models(tree_now, wanted)
    ranks = _ranks(models, wanted)
    own = frozenset(group for group in models if group in wanted and wanted[group].own)
    writes: list[Write] = []
    # Nodes first, then CPUs: v1 refuses tasks until a new group has both (docs/facts/linux-cgroups.md#cpu-sets).
    for knob, part in ((Knob.MEMS, _mems), (Knob.CPUS, _cpus)):
        goal = _goals(tree_now, wanted, models, pinned, part)
        now = {group: part(tree_now[group]) for group in models}
        if goal != now:
            writes += _Plan(knob, now, goal, ranks, own).writes()
    return writes


def _cpus(sets: Sets) -> CpuSet:
    return sets.cpus


def _mems(sets: Sets) -> CpuSet:
    return sets.mems


def _parent(group: str) -> str:
    return group.rpartition("/")[0]


def _top_down(groups: Iterable[str]) -> list[str]:
    # The name decides between groups of one level, so that the same input gives the same plan.
    return sorted(groups, key=lambda group: (group.count("/"), group))


def _models(tree_now: Iterable[str], wanted: Mapping[str, WantedSets]) -> dict[str, str]:
    """Each group, parents first, with the wanted group that it follows: itself, or the nearest one above."""
    models: dict[str, str] = {}
    for group in _top_down(tree_now):
        model = group if group in wanted else models.get(_parent(group))
        if model is not None:
            models[group] = model
    return models


def _ranks(models: Mapping[str, str], wanted: Mapping[str, WantedSets]) -> dict[str, int | None]:
    """The rank of each group: that of the highest one above it that has any."""
    ranks: dict[str, int | None] = {}
    for group, model in models.items():
        above = ranks.get(_parent(group))
        # A pod's group inside of a class yields with its class, whatever rank it would have alone.
        ranks[group] = wanted[model].rank if above is None else above
    return ranks


def _goals(
    tree_now: Mapping[str, Sets],
    wanted: Mapping[str, WantedSets],
    models: Mapping[str, str],
    pinned: Collection[str],
    part: Callable[[Sets], CpuSet],
) -> Masks:
    goal = {group: part(wanted[model].sets) for group, model in models.items()}
    # A pinned group without a set uses its parent's, so the groups above need not make room for it.
    held = {group: part(tree_now[group]) for group in pinned if group in goal and part(tree_now[group])}
    # v1 answers EBUSY when a parent is narrowed below a child, and a pinned child will not shrink.
    for group, kept in held.items():
        above = _parent(group)
        while above in goal:
            goal[above] |= kept
            above = _parent(above)
    for group, wanted_part in goal.items():  # parents come first
        limit = goal.get(_parent(group))
        # `or limit`: an empty intersection would be an empty set, which no kernel takes under running tasks.
        goal[group] = held.get(group) or (wanted_part if limit is None else (wanted_part & limit) or limit)
    return goal


class _Plan:
    """The writes of one knob. `here` is the state after the writes so far."""

    def __init__(
        self, knob: Knob, now: Masks, goal: Masks, ranks: Mapping[str, int | None], own: Collection[str]
    ) -> None:
        self._knob, self._goal = knob, goal
        # Somebody's own CPUs before the plan and after it: reclaimed work must not pass over either.
        self._taken, self._promised = CpuSet.union(now[g] for g in own), CpuSet.union(goal[g] for g in own)
        self._here = dict(now)
        self._ranks = ranks
        self._writes: list[Write] = []

    def writes(self) -> list[Write]:
        holders = self._ranked(None)
        # Groups that only hold others are widened before anything below moves, so that no child
        # leaves its parent on the way.
        for group in holders:
            self._step(group, self._here[group] | self._goal[group])
        ranks = sorted({rank for rank in self._ranks.values() if rank is not None})
        # With a single rank no group yields: a detour would only add writes.
        if len(ranks) > 1:
            self._shift(self._yielded(self._ranked(ranks[0])))
        # Tenants take their CPUs once reclaimed work has left them; the lowest rank grows last, into
        # what tenants gave up.
        for rank in reversed(ranks):
            self._shift({group: self._goal[group] for group in self._ranked(rank)})
        # Narrowed last and from the bottom up: v1 refuses a parent that still has a wider child.
        for group in reversed(holders):
            self._step(group, self._goal[group])
        return self._writes

    def _ranked(self, rank: int | None) -> list[str]:
        return _top_down(group for group, own in self._ranks.items() if own == rank)

    def _yielded(self, groups: list[str]) -> Masks:
        """The sets of the lowest rank until all others have moved: where possible what its old and new set share."""
        kept: Masks = {}
        for group in groups:
            here, goal = self._here[group], self._goal[group]
            above = kept.get(_parent(group))
            # The top of a yielding subtree decides where it waits; what is below has to fit into that.
            if above is None:
                kept[group] = here & goal or self._waypoint(here, goal, _parent(group))
            else:
                # In order of worth: what stays anyhow, what comes next, what it has; all cut to the
                # parent, which must contain it.
                kept[group] = (here & goal & above) or (goal & above) or (here & above) or above
        return kept

    def _waypoint(self, here: CpuSet, goal: CpuSet, parent: str) -> CpuSet:
        """Where a group waits whose old and new set share nothing: if possible on CPUs that no group has for itself."""
        # No other group waits for these CPUs: leaving them costs no write and disturbs no one.
        if not self._promised & here:
            return here
        elsewhere = self._here.get(parent, here) - self._taken - self._promised
        # The last resort is to stay: sharing another group's own CPUs for a moment is better than a set that cannot be
        # written.
        return here - self._promised or goal - self._taken or elsewhere or here

    def _shift(self, target: Masks) -> None:
        """From one consistent state of a subtree to another: all wide from the top, then all narrow from the bottom."""
        # Through the union of old and new: each step is a superset of one of them, so a tenant never
        # has less than either.
        for group, wanted in target.items():
            self._step(group, self._here[group] | wanted)
        for group, wanted in reversed(target.items()):
            self._step(group, wanted)

    def _step(self, group: str, value: CpuSet) -> None:
        """One write, where it changes something; an empty set is never written."""
        # Judged against the state after the writes before it, not against the tree as read: earlier
        # steps may have done it.
        if value and value != self._here[group]:
            self._writes.append(Write(group, self._knob, str(value)))
            self._here[group] = value
