"""Pods whose resident memory exceeds their request (docs/facts/katalyst-eviction.md#rss-overuse)."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from shared.contracts.pod import QosClass
from shared.core.decisions import Answer, Question, decision

JUDGED: tuple[QosClass, ...] = ("shared_cores", "reclaimed_cores")


class RssContainer(Question):
    """One container; a request that is null is not said."""

    request_bytes: int | None = None
    rss_bytes: int


class RssPod(Question):
    """A pod with its own threshold, if it has one."""

    name: str
    qos: QosClass
    labels: dict[str, str]
    rss_overuse_threshold_ratio: float | None = None
    containers: list[RssContainer]

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name

    @property
    def rss_bytes(self) -> int:
        """Of all containers."""
        return sum(c.rss_bytes for c in self.containers)

    @property
    def request_bytes(self) -> int | None:
        """Of all containers; None as soon as one does not say."""
        said = [c.request_bytes for c in self.containers if c.request_bytes]
        return sum(said) if said and len(said) == len(self.containers) else None

    def threshold_bytes(self, default_ratio: float) -> float | None:
        """Resident memory above this is too much; None where there is no such threshold."""
        own = self.rss_overuse_threshold_ratio
        ratio = default_ratio if own is None else own
        return None if self.request_bytes is None or ratio <= 0 else ratio * self.request_bytes


class RssQuestion(Question):
    """The switch, the threshold of pods without one of their own, which pods to look at, and the pods."""

    enabled: bool
    default_threshold_ratio: float
    label_filter: dict[str, str]
    pods: list[RssPod]


class RssAnswer(Answer):
    """Names, ascending."""

    soft_victims: list[str]


R = TypeVar("R", bound=RssPod)


@decision("rss_overuse", area="eviction_memory", asks=RssQuestion, answers=RssAnswer)
def rss_overuse(question: RssQuestion) -> RssAnswer:
    """Which pods use more resident memory than their requests allow?"""
    if not question.enabled:
        return RssAnswer(soft_victims=[])
    over = overusing(question.pods, question.default_threshold_ratio, question.label_filter)
    return RssAnswer(soft_victims=[pod.name for pod in over])


def overusing(pods: Iterable[R], default_ratio: float, labels: Mapping[str, str]) -> list[R]:
    """Shared and reclaimed pods with all these labels, above their threshold, by name."""
    over = []
    for pod in pods:
        threshold = pod.threshold_bytes(default_ratio)
        looked_at = pod.qos in JUDGED and labels.items() <= pod.labels.items()
        if looked_at and threshold is not None and pod.rss_bytes > threshold:
            over.append(pod)
    return sorted(over, key=lambda pod: pod.order)
