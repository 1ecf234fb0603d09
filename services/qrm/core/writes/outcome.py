"""The outcome of writing cgroups: what the kernel has now, and what is not as it should be."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from services.qrm.core.writes.plan import Sets
from shared.core.cpus.cpuset import CpuSet


@dataclass(frozen=True, slots=True)
class Problem:
    """One cgroup that is not as it should be, and why."""

    group: str
    why: str


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What a pass wrote, as read back from the kernel."""

    tree: Mapping[str, Sets]
    goal: Mapping[str, Sets]
    granted: Mapping[str, CpuSet]
    """CPUs in effect for each group."""
    writes: int
    problems: tuple[Problem, ...] = ()
    pending: tuple[Problem, ...] = ()
    """What cannot be written to groups that are still being made; it is tried again soon."""
    lacking: tuple[str, ...] = ()
    """Files that a setting needs and this kernel does not have."""
    unheeded: tuple[str, ...] = ()
    """Settings that have no effect on this machine for another reason, with it."""

    def unwritten(self) -> "WriteOutcome":
        """The same as found again later, with nothing written."""
        return replace(self, writes=0)

    def with_problems(self, more: Iterable[Problem]) -> "WriteOutcome":
        """The same with further problems."""
        return replace(self, problems=(*self.problems, *more))
