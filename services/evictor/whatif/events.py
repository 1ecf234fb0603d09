"""The kind `eviction_event`: the Kubernetes event of an eviction."""

from typing import Literal

from services.evictor.core.events import figure_text, kubernetes_message, met_text
from shared.whatif.decisions import Answer, Question, decision

EventPhase = Literal["created", "succeeded", "failed", "exceeded_grace"]
EventType = Literal["Normal", "Warning"]

_TYPE_AND_REASON: dict[EventPhase, tuple[EventType, str]] = {
    "created": ("Normal", "EvictCreated"),
    "succeeded": ("Normal", "EvictSucceeded"),
    "failed": ("Warning", "EvictFailed"),
    "exceeded_grace": ("Warning", "EvictExceededGracePeriod"),
}


class EventQuestion(Question):
    """Which step of which eviction."""

    phase: EventPhase
    style: Literal["short", "long"] = "short"
    plugin: str
    scope: str
    threshold: int | float | None = None
    observed: int | float | None = None
    failure: str | None = None


class EventAnswer(Answer):
    """The event as `kubectl get events` shows it."""

    type: EventType
    reason: str
    message: str


@decision("eviction_event", area="eviction_reclaimed", asks=EventQuestion, answers=EventAnswer)
def eviction_event(question: EventQuestion) -> EventAnswer:
    """The Kubernetes event of an eviction."""
    kind, reason = _TYPE_AND_REASON[question.phase]
    if question.phase == "exceeded_grace":  # the evictor tells it as a failure; Katalyst has an event of its own
        message = "Container runtime did not kill the pod within specified grace period"
    else:
        message = kubernetes_message(question.phase, why=_why(question), failure=question.failure)
    return EventAnswer(type=kind, reason=reason, message=message)


def _why(question: EventQuestion) -> str:
    """The short words that the evictor uses, or Katalyst's long ones with the figures."""
    if question.style == "short":
        return met_text(question.plugin, question.scope)
    return (
        f"plugin {question.plugin} met threshold in scope {question.scope}, "
        f"target {figure_text(question.threshold)}, observed {figure_text(question.observed)}"
    )
