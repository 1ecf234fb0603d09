"""Of all soft candidates one goes: which (docs/facts/katalyst-eviction.md#order-of-soft-candidates)."""

from collections.abc import Iterable
from typing import TypeVar

from shared.contracts.pod import Pod, QosClass
from shared.core.decisions import Answer, Question, decision

SCOPES = ("force", "memory", "cpu")
"""Candidates of these scopes stay longer than those of any other, the first longest."""


class SoftCandidate(Question):
    """A pod that somebody would like to see go."""

    name: str
    qos: QosClass
    priority: int | None = None
    scope: str


class SoftQuestion(Question):
    """All of them."""

    candidates: list[SoftCandidate]


class SoftAnswer(Answer):
    """Who stays longest first; the last one goes."""

    order: list[str]
    victim: str | None


S = TypeVar("S", bound=SoftCandidate)


@decision("soft_victim_order", area="eviction_framework", asks=SoftQuestion, answers=SoftAnswer)
def soft_victim_order(question: SoftQuestion) -> SoftAnswer:
    """The order of soft candidates; the last one is the victim."""
    order = [candidate.name for candidate in last_goes(question.candidates)]
    return SoftAnswer(order=order, victim=order[-1] if order else None)


def last_goes(candidates: Iterable[S]) -> list[S]:
    """Tenants stay before reclaimed pods, high priority before low (none is the lowest), then by scope; among equals
    the smallest name goes first."""
    by_name = sorted(candidates, key=lambda candidate: candidate.name, reverse=True)
    return sorted(by_name, key=_standing)


class _Standing(SoftCandidate):
    pod: Pod


def going_first(pods: Iterable[Pod], scope: str = "soft") -> list[Pod]:
    """The same order from its end: whom one plugin would take first."""
    candidates = (
        _Standing(name=pod.key, qos=pod.qos, priority=pod.priority, scope=scope, pod=pod)
        for pod in sorted(pods, key=lambda pod: pod.uid)
    )
    return [candidate.pod for candidate in reversed(last_goes(candidates))]


def _standing(candidate: SoftCandidate) -> tuple[bool, float, int]:
    priority = float("-inf") if candidate.priority is None else candidate.priority
    scope = SCOPES.index(candidate.scope) if candidate.scope in SCOPES else len(SCOPES)
    return candidate.qos == "reclaimed_cores", -priority, scope
