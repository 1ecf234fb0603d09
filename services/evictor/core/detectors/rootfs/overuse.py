"""Pods that use too much of the root file system (docs/facts/katalyst-eviction.md#root-file-system-overuse)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Self, TypeVar

from pydantic import Field, model_validator

from services.evictor.core.detectors.rootfs.pressure import Line, check_one
from shared.contracts.pod import QosClass
from shared.core.decisions import Answer, Question, decision

FLOOR_BYTES = 20 << 30
FLOOR_RATIO = 0.1
"""No threshold is lower, whatever is configured."""


class OverusePod(Question):
    """A pod and what it has written."""

    name: str
    namespace: str
    qos: QosClass
    used_bytes: Annotated[int, Field(ge=0)]

    @property
    def order(self) -> tuple[str, str]:
        """The last word of every ordering."""
        return self.namespace, self.name


P = TypeVar("P", bound=OverusePod)


def threshold_bytes(line: Line, capacity_bytes: int) -> float | None:
    """Use above this is too much; None where nothing is configured."""
    if line.amount is not None:
        return max(line.amount, FLOOR_BYTES)
    return None if line.ratio is None else max(line.ratio, FLOOR_RATIO) * capacity_bytes


def overusing(
    pods: Iterable[P],
    thresholds: Mapping[QosClass, float | None],
    supported: Collection[QosClass],
    shared_namespaces: Collection[str],
) -> list[P]:
    """Supported pods above the threshold of their class, the largest first. Only classes with a threshold have any,
    and of shared pods only those of the named namespaces."""
    over = []
    for pod in pods:
        threshold = thresholds.get(pod.qos) if pod.qos in supported else None
        named = pod.qos != "shared_cores" or pod.namespace in shared_namespaces
        if threshold is not None and named and pod.used_bytes > threshold:
            over.append(pod)
    return sorted(over, key=lambda pod: (-pod.used_bytes, pod.order))


class OveruseQuestion(Question):
    """The switch, the thresholds, whom they are for, and the pods."""

    enabled: bool
    max_victims: int
    supported_qos: list[QosClass]
    shared_threshold_bytes: int | None = None
    shared_threshold_ratio: float | None = None
    reclaimed_threshold_bytes: int | None = None
    reclaimed_threshold_ratio: float | None = None
    shared_namespaces: list[str]
    capacity_bytes: Annotated[int, Field(ge=0)]
    pods: list[OverusePod]

    @model_validator(mode="after")
    def _never_both(self) -> Self:
        check_one("shared_threshold", self.shared_threshold_bytes, self.shared_threshold_ratio)
        check_one("reclaimed_threshold", self.reclaimed_threshold_bytes, self.reclaimed_threshold_ratio)
        return self


class OveruseAnswer(Answer):
    """Names, the largest use first."""

    soft_victims: list[str]


@decision("rootfs_overuse", area="eviction_rootfs_network", asks=OveruseQuestion, answers=OveruseAnswer)
def rootfs_overuse(question: OveruseQuestion) -> OveruseAnswer:
    """Which pods use too much of the root file system?"""
    if not question.enabled:
        return OveruseAnswer(soft_victims=[])
    capacity = question.capacity_bytes
    shared = Line(question.shared_threshold_bytes, question.shared_threshold_ratio)
    reclaimed = Line(question.reclaimed_threshold_bytes, question.reclaimed_threshold_ratio)
    over = overusing(
        question.pods,
        {
            "shared_cores": threshold_bytes(shared, capacity),
            "reclaimed_cores": threshold_bytes(reclaimed, capacity),
        },
        question.supported_qos,
        question.shared_namespaces,
    )
    return OveruseAnswer(soft_victims=[pod.name for pod in over[: max(0, question.max_victims)]])
