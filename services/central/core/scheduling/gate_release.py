"""`release` decides which gated pods may proceed to the scheduler (docs/facts/scheduling.md#gates)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from services.central.core.scheduling.amounts import Amounts


@dataclass(frozen=True, slots=True)
class GatedPod:
    """A pod that waits; `requests` is what it takes of a node."""

    namespace: str
    name: str
    created_s: float
    gates: Collection[str]
    requests: Amounts
    priority: int = 0
    uid: str = ""

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def turn(self) -> tuple[int, float, str, str]:
        """Its place in the queue: the most important first, of those the oldest."""
        return (-self.priority, self.created_s, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Release:
    """The pods to release, in order; the first that must wait; and what is free once all released ones have come."""

    pods: tuple[GatedPod, ...]
    blocked_by: GatedPod | None
    free: Mapping[str, int]


def release(gate: str, pods: Iterable[GatedPod], free: Amounts) -> Release:
    """Release pods as long as their requests are free. No pod overtakes another, or a large pod would wait forever.

    Pods with a gate of others are not counted, because their arrival is unknown.
    """
    left = dict(free)
    released: list[GatedPod] = []
    for pod in sorted((pod for pod in pods if set(pod.gates) == {gate}), key=lambda pod: pod.turn):
        asked = {name: amount for name, amount in pod.requests.items() if amount > 0}
        if any(amount > left.get(name, 0) for name, amount in asked.items()):
            return Release(tuple(released), pod, left)
        for name, amount in asked.items():
            left[name] -= amount
        released.append(pod)
    return Release(tuple(released), None, left)
