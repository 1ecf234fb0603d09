"""The Kubernetes event of an eviction, word for word as the tutorial prints it.

Texts, the reason in its short and its long form: docs/facts/katalyst-eviction.md#events-of-an-eviction.
"""

from typing import Literal

from shared.contracts.eviction import Phase
from shared.core.decisions import Answer, Question, decision

EventPhase = Literal["created", "succeeded", "failed", "exceeded_grace"]


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

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@decision("eviction_event", area="eviction_reclaimed", asks=EventQuestion, answers=EventAnswer)
def eviction_event(question: EventQuestion) -> EventAnswer:
    """The Kubernetes event of an eviction."""
    why = met_text(question)
    match question.phase:
        case "created":
            return EventAnswer(
                type="Normal", reason="EvictCreated", message=f"Successfully create eviction; reason: {why}"
            )
        case "succeeded":
            text = f"Evicted pod has been deleted physically; reason: {why}"
            return EventAnswer(type="Normal", reason="EvictSucceeded", message=text)
        case "failed":
            text = f"Evict failed: {question.failure or 'unknown'}"
            return EventAnswer(type="Warning", reason="EvictFailed", message=text)
        case "exceeded_grace":
            return EventAnswer(
                type="Warning",
                reason="EvictExceededGracePeriod",
                message="Container runtime did not kill the pod within specified grace period",
            )


def met_text(question: EventQuestion) -> str:
    """Why the pod goes, in the short words of the tutorial or in the long ones with the figures."""
    if question.style == "short":
        return f"met threshold in scope: {question.scope} from plugin: {question.plugin}"
    return (
        f"plugin {question.plugin} met threshold in scope {question.scope}, "
        f"target {_figure(question.threshold)}, observed {_figure(question.observed)}"
    )


def message_of(phase: Phase, *, plugin: str, scope: str, detail: str) -> str:
    """The text of one of our own events; steps that the tutorial does not know say their reason in plain words."""
    if phase in ("created", "succeeded", "failed"):
        return eviction_event(EventQuestion(phase=phase, plugin=plugin, scope=scope, failure=detail or None)).message
    why = met_text(EventQuestion(phase="created", plugin=plugin, scope=scope))
    match phase:
        case "intended":
            return f"Intend to evict; reason: {why}"
        case "refused":
            return f"Eviction refused: {detail}; reason: {why}"
        case _:
            return f"Eviction cancelled: {detail}; reason: {why}"


def timeout_text(timeout_s: float) -> str:
    """The failure when a pod is still there after its time."""
    return f"eviction request did not complete within {_figure(timeout_s)}s"


def call_failed_text(pod: str, error: str) -> str:
    """The failure when the call itself failed for good."""
    return f'error when evicting pod "{pod}": {error}'


def _figure(value: int | float | None) -> str:
    """A number as people write it: whole ones without a fraction."""
    if value is None:
        return "unknown"
    return str(int(value)) if float(value).is_integer() else str(value)
