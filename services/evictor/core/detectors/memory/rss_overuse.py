"""Detects pods whose resident memory exceeds their request (docs/facts/katalyst-eviction.md#rss-overuse)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.contracts.pod import QosClass

JUDGED: tuple[QosClass, ...] = ("shared_cores", "reclaimed_cores")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResidentPod(Generic[T]):
    """A pod with the resident memory and the request of each of its containers, in their order."""

    name: str
    """Orders the pods that exceed their threshold."""
    qos: QosClass
    labels: Mapping[str, str]
    container_rss_bytes: Sequence[int]
    container_request_bytes: Sequence[int | None]
    """None or 0: that container requests no memory."""
    of: T
    """The caller's object."""
    own_threshold_ratio: float | None = None

    @property
    def rss_bytes(self) -> int:
        """The resident memory of all containers."""
        return sum(self.container_rss_bytes)

    @property
    def request_bytes(self) -> int | None:
        """The requests of all containers; None as soon as one requests nothing."""
        requests = [request for request in self.container_request_bytes if request]
        return sum(requests) if requests and len(requests) == len(self.container_request_bytes) else None

    def threshold_bytes(self, default_ratio: float) -> float | None:
        """Return the resident memory above which it is too much; None if there is no such threshold."""
        ratio = default_ratio if self.own_threshold_ratio is None else self.own_threshold_ratio
        return None if self.request_bytes is None or ratio <= 0 else ratio * self.request_bytes


def overusing(pods: Iterable[ResidentPod[T]], default_ratio: float, labels: Mapping[str, str]) -> list[ResidentPod[T]]:
    """Shared and reclaimed pods with all these labels, above their threshold, by name."""
    over = []
    for pod in pods:
        threshold = pod.threshold_bytes(default_ratio)
        judged = pod.qos in JUDGED and labels.items() <= pod.labels.items()
        if judged and threshold is not None and pod.rss_bytes > threshold:
            over.append(pod)
    return sorted(over, key=lambda pod: pod.name)
