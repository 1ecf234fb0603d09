"""The kinds `rootfs_pressure` and `rootfs_overuse`: room on the root file system, and pods that use too much of it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from services.evictor.core.detectors.rootfs.overuse import overusing, threshold_bytes
from services.evictor.core.detectors.rootfs.pressure import (
    CONDITION,
    MAX_AGE_S,
    SCOPE,
    RootfsLine,
    RootfsRoom,
    RootfsUser,
    check_one,
    heaviest_first,
)
from services.evictor.core.detectors.verdict import Met
from services.evictor.whatif.fields import Amount
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class ImageFs(Question):
    """The file system as read at some earlier time."""

    available_bytes: Amount
    used_bytes: Amount
    capacity_bytes: Amount
    inodes_free: Amount
    inodes_used: Amount
    inodes: Amount
    age_s: float = 0.0


class RootfsPod(Question):
    """A pod and what it has written on the root file system."""

    name: str
    namespace: str | None = None
    qos: QosClass
    used_bytes: Amount
    inodes_used: Amount
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


class RootfsAnswer(Answer):
    """Whether there is too little space, and who is evicted first."""

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
    by_bytes = RootfsRoom(fs.available_bytes, fs.capacity_bytes).below(
        RootfsLine(question.minimum_free_bytes, question.minimum_free_ratio)
    )
    by_inodes = RootfsRoom(fs.inodes_free, fs.inodes).below(
        RootfsLine(question.minimum_inodes_free, question.minimum_inodes_free_ratio)
    )
    if by_bytes:  # bytes decide when both are short
        order = heaviest_first(
            [_user(pod, pod.used_bytes) for pod in question.pods],
            fs.capacity_bytes,
            RootfsLine(question.pod_minimum_used_bytes, question.pod_minimum_used_ratio),
            RootfsLine(question.reclaimed_priority_used_bytes, question.reclaimed_priority_used_ratio),
        )
    elif by_inodes:
        order = heaviest_first(
            [_user(pod, pod.inodes_used) for pod in question.pods],
            fs.inodes,
            RootfsLine(question.pod_minimum_inodes_used, question.pod_minimum_inodes_used_ratio),
            RootfsLine(question.reclaimed_priority_inodes_used, question.reclaimed_priority_inodes_used_ratio),
        )
    else:
        return RootfsAnswer(met="NOT_MET")
    victims = [pod.of for pod in order[: max(0, question.top_n)]]
    return RootfsAnswer(met="HARD_MET", scope=SCOPE, condition=CONDITION, victims=victims)


def _user(pod: RootfsPod, used: int) -> RootfsUser[str]:
    return RootfsUser(pod.namespace or "", pod.name, pod.qos, used, pod.name, pod.age_s)


class OverusePod(Question):
    """A pod and what it has written."""

    name: str
    namespace: str
    qos: QosClass
    used_bytes: Annotated[int, Field(ge=0)]


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
    shared = RootfsLine(question.shared_threshold_bytes, question.shared_threshold_ratio)
    reclaimed = RootfsLine(question.reclaimed_threshold_bytes, question.reclaimed_threshold_ratio)
    over = overusing(
        (RootfsUser(pod.namespace, pod.name, pod.qos, pod.used_bytes, pod.name) for pod in question.pods),
        {
            "shared_cores": threshold_bytes(shared, capacity),
            "reclaimed_cores": threshold_bytes(reclaimed, capacity),
        },
        question.supported_qos,
        question.shared_namespaces,
    )
    return OveruseAnswer(soft_victims=[pod.of for pod in over[: max(0, question.max_victims)]])
