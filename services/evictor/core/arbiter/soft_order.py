"""Orders the candidates of soft pressures, of which one is evicted.

Facts: docs/facts/katalyst-eviction.md#order-of-soft-candidates.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.contracts.pod import Pod, QosClass

SCOPES = ("force", "memory", "cpu")
"""Candidates of these scopes stay longer than those of any other, the first longest."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SoftVictim(Generic[T]):
    """A candidate of a soft pressure: what its rank depends on, and the caller's object."""

    name: str
    qos: QosClass
    priority: int | None
    scope: str
    of: T


def last_goes(candidates: Iterable[SoftVictim[T]]) -> list[SoftVictim[T]]:
    """Order the candidates, the one to evict last: tenants stay before reclaimed pods, high priority before low
    (none is the lowest), then by scope; among equals the smallest name is evicted first."""
    # Sorted twice, because Python's sort is stable: by name within each rank, whatever the order of the input.
    by_name = sorted(candidates, key=lambda candidate: candidate.name, reverse=True)
    return sorted(by_name, key=_rank)


def going_first(pods: Iterable[Pod], scope: str = "soft") -> list[Pod]:
    """The same order from its end: whom one plugin would evict first."""
    candidates = (
        SoftVictim(pod.key, pod.qos, pod.priority, scope, pod) for pod in sorted(pods, key=lambda pod: pod.uid)
    )
    return [candidate.of for candidate in reversed(last_goes(candidates))]


def _rank(candidate: SoftVictim[T]) -> tuple[bool, float, int]:
    priority = float("-inf") if candidate.priority is None else candidate.priority
    scope = SCOPES.index(candidate.scope) if candidate.scope in SCOPES else len(SCOPES)
    return candidate.qos == "reclaimed_cores", -priority, scope
