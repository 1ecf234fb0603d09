"""The cgroup writer is the only part of qrm that writes cgroups: it compares, writes, reads back, and names what
went wrong."""

import errno
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field

from services.qrm.core.writes.outcome import Problem, WriteOutcome
from services.qrm.core.writes.plan import Sets, WantedSets, goal_sets, plan_writes
from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob, Write, same
from shared.core.cpus.cpuset import CpuSet

MAX_ROUNDS = 32  # plans in one pass; each round either finishes, or finds a new or an unwilling group
MAX_BUSY = 3  # a group that the kernel calls busy this often is left alone until the next pass
_MOVED = (errno.EBUSY, errno.EACCES)  # v1: a child appeared or grew, or a parent shrank, since the tree was read
_ABSENT = "the cgroup does not exist"
_HOPELESS = (errno.EROFS, errno.EPERM)  # no other group will do better

Count = Callable[[str, str], None]


@dataclass(slots=True)
class _Progress:
    writes: int = 0
    busy: dict[str, int] = field(default_factory=dict)
    refused: dict[str, Problem] = field(default_factory=dict)
    hopeless: bool = False

    def note(self, write: Write, error: OSError) -> str:
        """Take note of a refusal; returns its name for the counter."""
        problem = Problem(write.group, f"{write.knob}={write.value}: {error.strerror}")
        # Usually the tree has changed since it was read: reading and planning again resolves that, so it is no refusal
        # yet.
        if error.errno in _MOVED:
            self.busy[write.group] = self.busy.get(write.group, 0) + 1
            if self.busy[write.group] < MAX_BUSY:
                return "busy"
        self.hopeless = error.errno in _HOPELESS
        # From now on the group counts as pinned, so that the next plan goes around it and the rest still gets its sets.
        self.refused[write.group] = problem
        return "refused"


class CgroupWriter:
    """Brings the groups below `top` to what is wanted."""

    def __init__(self, cgroups: Cgroups, top: str, count: Count = lambda _file, _result: None) -> None:
        self.cgroups, self.top, self._count = cgroups, top, count

    def make(self, groups: Iterable[str]) -> None:
        """Create the groups that are missing.

        Raises:
            OSError: no right to, or a controller is missing.
        """
        for group in groups:
            if not self.cgroups.exists(group):
                self.cgroups.make(group)

    def read_tree(self, wanted: Set[str], *, below: bool = True) -> dict[str, Sets]:
        """Read the top group, the wanted groups that exist, and optionally all below them; groups that vanish are
        left out.

        Other groups below `top` belong to others and are not read. On v2 an empty set means that the group uses its
        parent's set, which is what is returned.
        """
        tree: dict[str, Sets] = {}
        # A v2 group without a set of its own uses its parent's; for the top group that is what the cgroup root grants.
        top = self._sets(self.top, self._effective(""))
        if top is None:
            return tree
        tree[self.top] = top
        # A wanted group below another wanted one is found on the way down from that one: it must not be walked twice.
        roots = sorted(g for g in wanted if g != self.top and g.rpartition("/")[0] not in wanted - {self.top})
        found = (group for name in roots for group in self.cgroups.tree(name)) if below else sorted(wanted - {self.top})
        homes = {group.rpartition("/")[0] for group in roots} - {self.top}
        between = {home: self._effective(home) for home in homes}  # somebody else's groups between top and wanted ones
        for group in found:
            parent = group.rpartition("/")[0]
            # No parent in the tree: it vanished between two reads, and this group with it.
            above = tree.get(parent) or between.get(parent)
            sets = None if above is None else self._sets(group, above)
            if sets is not None:
                tree[group] = sets
        return tree

    def apply(
        self,
        wanted: Mapping[str, WantedSets],
        pinned: Collection[str] = (),
        tree_now: Mapping[str, Sets] | None = None,
        *,
        needed: Collection[str] | None = None,
    ) -> WriteOutcome:
        """Write until the tree is as wanted, as far as the kernel allows; plan again whenever the tree has changed.

        `tree_now` is the tree if the caller has just read it; the tree in the outcome is always read after writing. A
        group that refuses keeps its sets, the groups above it make room, and the outcome names it. `needed` are the
        groups (by default all) whose absence is a problem, because a pod may end at any moment.
        """
        state = _Progress()
        tree = self.read_tree(wanted.keys()) if tree_now is None else tree_now
        # Bounded: a process that creates groups as fast as they are read would block the service here forever.
        for _ in range(MAX_ROUNDS):
            keep = {*pinned, *state.refused}
            plan = plan_writes(tree, wanted, keep)
            if not plan or state.hopeless:
                break
            # The tree is read again even after a plan without an error: on v2 a write that went through says little,
            # and a container may have come in between (docs/facts/linux-cgroups.md#cpu-sets).
            self._execute(plan, state)
            tree = self.read_tree(wanted.keys())
        else:
            state.refused.setdefault(self.top, Problem(self.top, f"the tree still moves after {MAX_ROUNDS} plans"))
        # With what refused counted as pinned: the outcome is held against what could be reached, and
        # the refusal is named by itself.
        goal = goal_sets(tree, wanted, keep)
        granted = self._granted(tree)
        missing = [
            Problem(g, "it has no CPU set: the cpuset controller is off" if self.cgroups.exists(g) else _ABSENT)
            for g in wanted
            # A group that exists and has no set is a fault of the machine even where its absence would be none.
            if g not in tree and (needed is None or g in needed or self.cgroups.exists(g))
        ]
        ungranted = [
            Problem(g, f"the kernel grants CPUs {granted[g]} instead of {sets.cpus}")
            for g, sets in tree.items()
            # v2 takes any set and grants what the parent has; only `cpuset.cpus.effective` tells the difference.
            if g in granted and g not in keep and granted[g] != sets.cpus
        ]
        return WriteOutcome(tree, goal, granted, state.writes, (*state.refused.values(), *missing, *ungranted))

    def in_force(self, wanted: Set[str], *, below: bool = True) -> WriteOutcome:
        """Return what is in force now, including groups `below` the wanted ones, without writing."""
        tree = self.read_tree(wanted, below=below)
        return WriteOutcome(tree, tree, self._granted(tree), 0)

    def settle(self, writes: Iterable[Write]) -> list[Problem]:
        """Write other settings one by one, each only where it differs; a busy one is tried again in the next pass."""
        problems = []
        for write in writes:
            # A write has effects even where it changes nothing (v1 reclaims at a memory limit), and
            # costs as much as any other.
            if not self.differs(write):
                continue
            try:
                self._write(write)
            except OSError as error:
                # v1 says so for a memory limit below use and changes nothing; the next pass comes with a lower use or a
                # higher step (docs/facts/linux-cgroups.md#memory-limits).
                busy = error.errno == errno.EBUSY
                self._count(write.knob, "busy" if busy else "refused")
                if not busy:
                    problems.append(Problem(write.group, f"{write.knob}={write.value}: {error.strerror}"))
        return problems

    def differs(self, write: Write) -> bool:
        """Return whether a setting exists and differs from the wanted value."""
        # No file: an older kernel, or a controller that is off. There is nothing to settle, and no error in it.
        text = self.cgroups.raw(write.group, write.knob)
        return text is not None and not same(write.knob, write.value, text, self.cgroups.version)

    def _execute(self, plan: list[Write], state: _Progress) -> None:
        for write in plan:
            try:
                written = self._write(write)
            except OSError as error:
                # The rest of the plan depends on this step: its prefix so far is a safe state, a write after the gap
                # might not be.
                self._count(write.knob, state.note(write, error))
                return
            state.writes += written

    def _write(self, write: Write) -> bool:
        # False: the group vanished, which is no error (docs/facts/linux-cgroups.md#a-group-that-vanishes).
        written = self.cgroups.write(write.group, write.knob, write.value)
        self._count(write.knob, "ok" if written else "gone")
        return written

    def _granted(self, tree: Mapping[str, Sets]) -> dict[str, CpuSet]:
        texts = {group: self.cgroups.effective_cpus(group) for group in tree}
        return {group: CpuSet.parse(text) for group, text in texts.items() if text is not None}

    def _effective(self, group: str) -> Sets:
        cpus, mems = self.cgroups.effective_cpus(group), self.cgroups.effective_mems(group)
        return Sets(CpuSet.parse(cpus or ""), CpuSet.parse(mems or ""))

    def _sets(self, group: str, above: Sets) -> Sets | None:
        cpus, mems = self.cgroups.raw(group, Knob.CPUS), self.cgroups.raw(group, Knob.MEMS)
        if cpus is None or mems is None:
            return None
        own = Sets(CpuSet.parse(cpus), CpuSet.parse(mems))
        # On v1 an empty set is just that and must be filled; on v2 it is the parent's, and the plan
        # has to start from there.
        return own if self.cgroups.version == 1 else Sets(own.cpus or above.cpus, own.mems or above.mems)
