"""The kinds `evict_outcome` and `choose_killer`: what an attempt to evict leads to, and which killer makes it.

Facts: docs/facts/katalyst-eviction.md#killing-a-pod. The evictor has one actuator and looks each pod up by its UID.
"""

from collections.abc import Collection, Mapping
from typing import Literal

from shared.contracts.pod import QosClass
from shared.core.pods.qos import Selectors, qos_class
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision

UNKNOWN_KILLER = "unknown_killer"
CallResult = Literal["ok", "failed", "not_found", "budget"]
Outcome = Literal["evicted", "gone", "retry", "wait"]

_AFTER_CALL: dict[CallResult, Outcome] = {"ok": "evicted", "not_found": "evicted", "failed": "retry", "budget": "wait"}


def still_there(uid: str, cached_uid: str | None, api_uid: str | None) -> bool:
    """Whether the pod that is meant is there: as the cache says, and the API server where the cache has nothing."""
    return uid == (api_uid if cached_uid is None else cached_uid)


def after_call(result: CallResult) -> Outcome:
    """The outcome of a call; a pod that it did not find has gone in between, as was wanted."""
    return _AFTER_CALL[result]


class OutcomeQuestion(Question):
    """The pod meant, who bears its name now, and what the call gave, should one be made."""

    uid: str
    cached_uid: str | None = None
    api_uid: str | None = None
    api_result: CallResult


class OutcomeAnswer(Answer):
    """What to do next."""

    outcome: Outcome


@decision("evict_outcome", area="eviction_framework", asks=OutcomeQuestion, answers=OutcomeAnswer)
def evict_outcome(question: OutcomeQuestion) -> OutcomeAnswer:
    """What an eviction attempt comes to. For a pod that is gone, or another of the same name, no call is made."""
    if not still_there(question.uid, question.cached_uid, question.api_uid):
        return OutcomeAnswer(outcome="gone")
    return OutcomeAnswer(outcome=after_call(question.api_result))


class KillerQuestion(Question):
    """A pod's annotations, and the killers that are configured and that there are."""

    annotations: dict[str, str]
    expanded_selectors: dict[QosClass, dict[str, str]] | None = None
    default_killer: str
    qos_killers: dict[QosClass, str]
    registered_killers: list[str]


class KillerAnswer(Answer):
    """The killer's name."""

    killer: str | None = None
    error: str | None = None
    message: str | None = None


@decision("choose_killer", area="eviction_framework", asks=KillerQuestion, answers=KillerAnswer)
def choose_killer(question: KillerQuestion) -> KillerAnswer:
    """Which killer evicts this pod: that of its QoS level, else the default one."""
    check_killers(question.default_killer, question.qos_killers, question.registered_killers)
    return KillerAnswer(
        killer=killer_of(
            question.annotations, question.expanded_selectors, question.default_killer, question.qos_killers
        )
    )


def check_killers(default: str, by_qos: Mapping[QosClass, str], registered: Collection[str]) -> None:
    """Whether every configured killer is there.

    Raises:
        Refused: `unknown_killer`, one is not; the message names it.
    """
    for where, killer in [("default_killer", default), *sorted(by_qos.items())]:
        if killer not in registered:
            known = ", ".join(sorted(registered)) or "none"
            raise Refused(f"{where}: {killer!r} is not registered; registered: {known}", reason=UNKNOWN_KILLER)


def killer_of(
    annotations: Mapping[str, str], selectors: Selectors | None, default: str, by_qos: Mapping[QosClass, str]
) -> str:
    """A pod whose level cannot be read gets the default."""
    try:
        return by_qos.get(qos_class(annotations, selectors), default)
    except Refused:
        return default
