"""Say what metrics needs of the world; `main` builds it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.metrics.core.counters import Counts
from services.metrics.core.figures.figure import OffersByKind
from services.metrics.core.figures.results import TargetReading
from services.metrics.core.figures.target import TENANTS, Target
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import Layout, OwnLayout
from shared.ports import PodSource


@dataclass(frozen=True, slots=True)
class Collected:
    """What one pass read. `failures` says by source why expected figures are absent."""

    readings: Mapping[Target, TargetReading]
    failures: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    """By name of an application outside of pods, why its cgroup cannot be read."""
    uncounted: str = ""
    """Why enabled performance counters have no figures, and what to do."""


class Collect(Protocol):
    """Reads the host."""

    @property
    def offered(self) -> OffersByKind:
        """The figures that the sources offer."""
        ...

    def collect(self, pods: Sequence[Pod], applications: Sequence[Target] = (), *, whole: bool = False) -> Collected:
        """One pass over everything; `whole`: also over what moves and is not read in each pass for that.

        Raises:
            OSError: the host cannot be read at all.
        """
        ...

    def close(self) -> None:
        """Close what is kept open."""
        ...


class PerfCounters(Protocol):
    """Counts cycles and instructions of cgroups, one time window after another."""

    @property
    def failure(self) -> str:
        """Return why there are no counts, and what to do; "" if nothing is wrong."""
        ...

    def follow(self, groups: Sequence[str]) -> None:
        """Read the counts of a window that has ended, and start the next window over these cgroups when it is due.

        Called in every pass; does not block and does not raise.
        """
        ...

    def counts(self, group: str) -> Counts | None:
        """Return the counts of a cgroup and all below it in the last window: zeros if none ran; None if unknown."""
        ...

    def close(self) -> None:
        """End the current window."""
        ...


class Tripwire(Protocol):
    """Reads the few figures that decide whether a pass is worth making now."""

    def probe(self) -> tuple[int | None, int | None]:
        """CPU time of the tenants so far in nanoseconds, and free bytes; None for what cannot be read."""
        ...

    def forget(self) -> None:
        """Take nothing over from earlier probes: a pass is about to read the same counters."""
        ...

    def close(self) -> None:
        """Close what is kept open."""
        ...


class Alarm(Protocol):
    """Wakes the app when the kernel reports that tasks have stalled."""

    @property
    def armed(self) -> Sequence[str]:
        """The files that can wake it now; none where the kernel has no triggers."""
        ...

    def arm(self, wake: Callable[[], None]) -> None:
        """Arm what is not armed yet; called again after every pass, since cgroups come and go."""
        ...

    def close(self) -> None:
        """Disarm everything."""
        ...


class Show(Protocol):
    """Exposes the last sample to readers of this process's metrics."""

    def show(self, sample: NodeSample, *, missing: int, failing: int) -> None:
        """Take a sample, and how many figures could not be believed and how many sources failed."""
        ...

    def close(self) -> None:
        """Show nothing any more."""
        ...


@dataclass(frozen=True, slots=True)
class MetricsPorts:
    """The host, what wakes the app between two passes, and what shows the last sample."""

    pods: PodSource
    collector: Collect
    tripwire: Tripwire
    alarm: Alarm
    show: Show
    tenants: Target = TENANTS
    """The target whose CPU time the tripwire reads as well."""
    layout: Layout = field(default_factory=OwnLayout)
    """The cgroup layout of pods and applications."""
