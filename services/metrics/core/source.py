"""Define a source: one file in `services/metrics/sources` that ends in `SOURCE = Source(...)`.

A source names the figures that it offers for each kind of target, and reads their raw values through the given `Host`.
It opens nothing by itself. A file is therefore read once in a pass for all sources, stays open if that is cheaper, and
comes from the generated host in tests and in the simulator.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeVar

from services.metrics.core.counters import Counts
from services.metrics.core.figures.figure import Figure
from services.metrics.core.figures.target import Kind, Target
from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.gates import Gates
from shared.core.cgroups.knobs import Version
from shared.core.file_system import FileSystem

T = TypeVar("T")


class Host(Protocol):
    """The host as a source reads it. Paths are relative to the host's root ("proc/meminfo").

    Every method except `counts`, `once`, `tally` and `turn` may raise OSError: the file exists but cannot be read.
    """

    @property
    def version(self) -> Version:
        """Which cgroup version the host has."""
        ...

    @property
    def sees_tasks(self) -> bool:
        """Whether the tasks that its cgroups list can be looked up in `proc`."""
        ...

    @property
    def most_tasks(self) -> int:
        """How many tasks of one container may be read in this pass."""
        ...

    @property
    def passes(self) -> int:
        """Number of this pass."""
        ...

    def text(self, path: str) -> str | None:
        """A file that is worth keeping open; None where it does not exist."""
        ...

    def record(self, path: str) -> str | None:
        """A short file that is read once and closed (of a task, of a device); None where it does not exist."""
        ...

    def names(self, path: str) -> Sequence[str]:
        """Return the names in a folder, ascending; empty if it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether a path exists, even as a dangling link."""
        ...

    def group_folder(self, target: Target, controller: str) -> str:
        """The folder of the target's cgroup in a v1 hierarchy (the only one on v2).

        Raises:
            Refused: the cgroup's name is not allowed.
        """
        ...

    def group_text(self, target: Target, name: str, controller: str, *, seldom: bool = False) -> str | None:
        """A file of the target's cgroup; one that is read `seldom` is not worth being kept open."""
        ...

    def file(self, path: str) -> str | None:
        """A file of a cgroup by its whole path, as `group_folder` and `groups_below` give it."""
        ...

    def groups_below(self, folder: str) -> Sequence[str]:
        """The folders of the cgroups directly below one."""
        ...

    def root_file_system(self) -> FileSystem | None:
        """Return how full the host's root file system is, the one figure that no file contains. None if unknown."""
        ...

    def counts(self, target: Target) -> Counts | None:
        """Return what the tasks of the target's cgroup did in the last counting window. None if unknown."""
        ...

    def once(self, find: Callable[["Host", str], T], about: str) -> T:
        """Return the result of `find` for a folder or file, computed once a pass, because several targets may ask."""
        ...

    def tally(self, about: str, counters: Mapping[str, int], members: Collection[str], most_per_s: float) -> float:
        """The growth so far of a set of counters whose members come and go, such as those of a cgroup's tasks.

        `counters` may leave out members. None counts for more than `most_per_s`.
        """
        ...

    def turn(self, source: str, about: str) -> int:
        """How often the source has asked so before: one that reads a part of something only reads another each time."""
        ...


Cost = Literal["cheap", "moderate", "dear"]
"""Per target and reading, on the kernel's own files: up to 5 us, up to 25 us, more (`python -m bench.source_cost`)."""


@dataclass(frozen=True, slots=True)
class Source:
    """One source: the figures it offers for each kind of target, and how their raw values are read.

    `read` returns the raw values it finds; a missing value is left out, never given as 0. It may raise OSError,
    ValueError, IndexError or ArithmeticError: this source's figures of this target are then absent in the pass, and the
    health says so. Kinds of target that `gates` names are not read in every pass.
    """

    figures: Mapping[Kind, tuple[Figure, ...]]
    read: Callable[[Host, Target], Raw]
    cost: Cost = "cheap"
    gates: Gates = field(default_factory=dict)
    adds_up: frozenset[str] = frozenset()
    """Raw values that may be summed over cgroups for a pool without a cgroup of its own (`reads.pooled`): levels
    and, if the source is read in every pass, counters. Readings behind a gate are of different times, so sums of
    their counters are meaningless."""
    counters: bool = False
    """Whether it reads performance counters; such a source is used only if `metrics.perf` is enabled."""
