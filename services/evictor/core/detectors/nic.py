"""Detects pods on a network card that is down (docs/facts/katalyst-eviction.md#network-card)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CardPod(Generic[T]):
    """A pod with the network cards that it was given."""

    name: str
    """Orders the pods."""
    cards: Collection[str]
    of: T
    """The caller's object."""


def is_down(bandwidth: float | None) -> bool:
    """Whether a card has no bandwidth to give."""
    return not bandwidth


def stranded(pods: Iterable[CardPod[T]], down: Collection[str]) -> list[CardPod[T]]:
    """Pods on one of these cards, by name."""
    return sorted((pod for pod in pods if set(pod.cards) & set(down)), key=lambda pod: pod.name)
