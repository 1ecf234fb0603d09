"""Too little room on the root file system, and who goes (docs/facts/katalyst-eviction.md#root-file-system)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

from pydantic import Field, model_validator

from services.evictor.core.detectors.reclaimed.overcommit import Met
from shared.contracts.pod import QosClass
from shared.core.decisions import Answer, Question, decision

SCOPE = "SystemRootfs"
CONDITION = "SystemRootfs/NoSchedule"
MAX_AGE_S = 60.0
"""A figure older than this is missing."""

Amount = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Line:
    """An amount (bytes, or a count of inodes) or a ratio of the capacity; neither: there is no line."""

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
class Room:
    """Bytes or inodes of the file system; None is unknown."""

    free: int | None
    capacity: int | None

    def below(self, line: Line) -> bool:
        """Whether there is too little. More free than there is in all cannot be, and is no evidence."""
        threshold = line.of(self.capacity)
        if threshold is None or self.free is None:
            return False
        mistaken = self.capacity is not None and self.free > self.capacity and line.amount is None
        return self.free < threshold and not mistaken


class RootfsPod(Question):
    """A pod and what it has written on the root file system."""

    name: str
    namespace: str | None = None
    qos: QosClass
    used_bytes: Amount
    inodes_used: Amount
    age_s: float = 0.0

    @property
    def order(self) -> tuple[str, str]:
        """The last word of every ordering."""
        return self.namespace or "", self.name

    def used(self, kind: str) -> int:
        """Of "bytes" or "inodes"."""
        return self.used_bytes if kind == "bytes" else self.inodes_used


P = TypeVar("P", bound=RootfsPod)


def heaviest_first(pods: Iterable[P], kind: str, capacity: int | None, protected: Line, reclaimed: Line) -> list[P]:
    """Reclaimed pods above their line first, then all others, by use; others below `protected` are left out.

    A pod whose figures are too old is no candidate.
    """
    first_above, kept_below = reclaimed.of(capacity), protected.of(capacity)
    ranked = []
    for pod in pods:
        used = pod.used(kind)
        first = pod.qos == "reclaimed_cores" and first_above is not None and used > first_above
        if pod.age_s <= MAX_AGE_S and (first or kept_below is None or used >= kept_below):
            ranked.append((not first, -used, pod.order, pod))
    return [pod for *_, pod in sorted(ranked, key=lambda item: item[:3])]


class ImageFs(Question):
    """The file system as it was read so long ago."""

    available_bytes: Amount
    used_bytes: Amount
    capacity_bytes: Amount
    inodes_free: Amount
    inodes_used: Amount
    inodes: Amount
    age_s: float = 0.0


class RootfsQuestion(Question):
    """The file system, the lines (each as an amount or as a ratio of the capacity), and the pods."""

    image_fs: ImageFs | None = None
    minimum_free_bytes: int | None = None
    minimum_free_ratio: float | None = None
    minimum_inodes_free: int | None = None
    minimum_inodes_free_ratio: float | None = None
    pod_minimum_used_bytes: int | None = None
    pod_minimum_used_ratio: float | None = None
    pod_minimum_inodes_used: int | None = None
    pod_minimum_inodes_used_ratio: float | None = None
    reclaimed_priority_used_bytes: int | None = None
    reclaimed_priority_used_ratio: float | None = None
    reclaimed_priority_inodes_used: int | None = None
    reclaimed_priority_inodes_used_ratio: float | None = None
    pods: list[RootfsPod]
    top_n: int = 1

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        for stem in ("minimum_free", "pod_minimum_used", "reclaimed_priority_used"):
            check_one(stem, getattr(self, f"{stem}_bytes"), getattr(self, f"{stem}_ratio"))
        for stem in ("minimum_inodes_free", "pod_minimum_inodes_used", "reclaimed_priority_inodes_used"):
            check_one(stem, getattr(self, stem), getattr(self, f"{stem}_ratio"))
        return self


def check_one(name: str, amount: int | None, ratio: float | None) -> None:
    """Whether a line is said at most once.

    Raises:
        ValueError: it is given as an amount and as a ratio.
    """
    if amount is not None and ratio is not None:
        raise ValueError(f"{name}: give an amount or a ratio, not both")


class RootfsAnswer(Answer):
    """Whether there is too little room, and who goes first."""

    met: Met
    scope: str | None = None
    condition: str | None = None
    victims: list[str] = []


@decision("rootfs_pressure", area="eviction_rootfs_network", asks=RootfsQuestion, answers=RootfsAnswer)
def rootfs_pressure(question: RootfsQuestion) -> RootfsAnswer:
    """Is there too little room on the root file system, and who goes?"""
    fs = question.image_fs
    if fs is None or fs.age_s > MAX_AGE_S:
        return RootfsAnswer(met="NOT_MET")
    by_bytes = Room(fs.available_bytes, fs.capacity_bytes).below(
        Line(question.minimum_free_bytes, question.minimum_free_ratio)
    )
    by_inodes = Room(fs.inodes_free, fs.inodes).below(
        Line(question.minimum_inodes_free, question.minimum_inodes_free_ratio)
    )
    if by_bytes:  # bytes decide when both are short
        order = heaviest_first(
            question.pods,
            "bytes",
            fs.capacity_bytes,
            Line(question.pod_minimum_used_bytes, question.pod_minimum_used_ratio),
            Line(question.reclaimed_priority_used_bytes, question.reclaimed_priority_used_ratio),
        )
    elif by_inodes:
        order = heaviest_first(
            question.pods,
            "inodes",
            fs.inodes,
            Line(question.pod_minimum_inodes_used, question.pod_minimum_inodes_used_ratio),
            Line(question.reclaimed_priority_inodes_used, question.reclaimed_priority_inodes_used_ratio),
        )
    else:
        return RootfsAnswer(met="NOT_MET")
    victims = [pod.name for pod in order[: max(0, question.top_n)]]
    return RootfsAnswer(met="HARD_MET", scope=SCOPE, condition=CONDITION, victims=victims)
