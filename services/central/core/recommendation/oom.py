"""What OOM kills teach (docs/facts/katalyst-recommendation.md#kills-for-want-of-memory).

A kill is a lower bound for a week, not a sample, because one peak in many days lies below every percentile. The raised
figure is the container's allowance when it was killed, so that a raise does not build on another one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from services.central.core.recommendation.request import MIB, rounded_memory

KEEP_S = 7 * 86_400.0
MAX_RECORDS = 5000
BUMP_RATIO = 1.2
MIN_BUMP_BYTES = 100 * MIB

ContainerKey = tuple[str, str, str]
"""Namespace, pod, container."""


@dataclass(frozen=True, slots=True)
class OomKill:
    """A container that was killed, what it had been given, and when it ended."""

    namespace: str
    pod: str
    container: str
    memory_bytes: int
    finished_s: float

    @property
    def key(self) -> ContainerKey:
        """The container of the record; a container has one."""
        return (self.namespace, self.pod, self.container)


@dataclass(frozen=True, slots=True)
class WorkloadContainer:
    """A container of the pods of a Deployment."""

    namespace: str
    workload: str
    container: str


def is_news(kill: OomKill, known: OomKill | None) -> bool:
    """Return whether a kill must be kept: it teaches something, and was not reported before."""
    if kill.memory_bytes <= 0:  # nobody knows how much was too little
        return False
    return known is None or (kill.memory_bytes >= known.memory_bytes and kill.finished_s != known.finished_s)


def kept(
    kills: Mapping[ContainerKey, OomKill], now_s: float, keep_s: float = KEEP_S, most: int = MAX_RECORDS
) -> list[OomKill]:
    """The records that are young enough, the newest first and no more than so many."""
    young = [kill for kill in kills.values() if now_s - kill.finished_s <= keep_s]
    return sorted(young, key=lambda kill: (-kill.finished_s, kill.key))[:most]


@dataclass(frozen=True, slots=True)
class Lift:
    """How much more than what was too little: so many times, and so many bytes at least."""

    ratio: float = BUMP_RATIO
    min_bump_bytes: int = MIN_BUMP_BYTES

    def lifted(self, size_bytes: int) -> int:
        """The memory to ask for after a kill."""
        return rounded_memory(max(size_bytes + self.min_bump_bytes, int(size_bytes * self.ratio)))


USUAL_LIFT = Lift()


def memory_floor(kills: Iterable[OomKill], of: WorkloadContainer, now_s: float, lift: Lift = USUAL_LIFT) -> int | None:
    """Return what a container of a workload needs after its kills of the last week; None without one."""
    mine = re.compile(rf"{re.escape(of.workload)}-[a-z0-9]+-[a-z0-9]{{5}}")
    too_little = [
        kill.memory_bytes
        for kill in kills
        if (kill.namespace, kill.container) == (of.namespace, of.container)
        and mine.fullmatch(kill.pod)
        and now_s - kill.finished_s <= KEEP_S
    ]
    return lift.lifted(max(too_little)) if too_little else None
