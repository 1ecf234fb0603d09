"""Detects too little room on the root file system, and ranks who uses it.

Facts: docs/facts/katalyst-eviction.md#root-file-system.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.contracts.pod import QosClass

SCOPE = "SystemRootfs"
CONDITION = "SystemRootfs/NoSchedule"
MAX_AGE_S = 60.0
"""A figure older than this is missing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RootfsLine:
    """An amount (bytes, or a count of inodes) or a ratio of the capacity; neither: there is no threshold."""

    amount: int | None = None
    ratio: float | None = None

    def of(self, capacity: int | None) -> float | None:
        """The line as an amount. A ratio of 0 or 1 is no line, and neither is one of an unknown capacity."""
        if self.amount is not None:
            return self.amount
        if self.ratio is None or not 0 < self.ratio < 1 or not capacity:
            return None
        return self.ratio * capacity


@dataclass(frozen=True, slots=True)
class RootfsRoom:
    """Bytes or inodes of the file system; None is unknown."""

    free: int | None
    capacity: int | None

    def below(self, line: RootfsLine) -> bool:
        """Return whether there is too little. A free amount above the total is impossible, and no evidence."""
        threshold = line.of(self.capacity)
        if threshold is None or self.free is None:
            return False
        mistaken = self.capacity is not None and self.free > self.capacity and line.amount is None
        return self.free < threshold and not mistaken


@dataclass(frozen=True, slots=True)
class RootfsUser(Generic[T]):
    """A pod with what it uses of the root file system, in bytes or in inodes."""

    namespace: str
    name: str
    """Orders pods of equal use, after the namespace."""
    qos: QosClass
    used: int
    of: T
    """The caller's object."""
    age_s: float = 0.0


def heaviest_first(
    pods: Iterable[RootfsUser[T]], capacity: int | None, protected: RootfsLine, reclaimed: RootfsLine
) -> list[RootfsUser[T]]:
    """Reclaimed pods above their line first, then all others, by use; others below `protected` are left out.

    A pod whose figures are too old is no candidate.
    """
    first_above, spared_below = reclaimed.of(capacity), protected.of(capacity)
    ranked = []
    for pod in pods:
        first = pod.qos == "reclaimed_cores" and first_above is not None and pod.used > first_above
        if pod.age_s <= MAX_AGE_S and (first or spared_below is None or pod.used >= spared_below):
            ranked.append((not first, -pod.used, (pod.namespace, pod.name), pod))
    return [pod for *_, pod in sorted(ranked, key=lambda item: item[:3])]


def check_one(name: str, amount: int | None, ratio: float | None) -> None:
    """Whether a line is given at most once.

    Raises:
        ValueError: it is given as an amount and as a ratio.
    """
    if amount is not None and ratio is not None:
        raise ValueError(f"{name}: give an amount or a ratio, not both")
