"""Words the events of an eviction as the tutorial prints them.

Texts, the reason in its short and its long form: docs/facts/katalyst-eviction.md#events-of-an-eviction.
"""

from typing import Literal

from shared.contracts.eviction_phases import Phase

KubernetesPhase = Literal["created", "succeeded", "failed"]
"""The steps that are also an event of Kubernetes."""


def met_text(plugin: str, scope: str) -> str:
    """Why the pod goes, in the short words of the tutorial."""
    return f"met threshold in scope: {scope} from plugin: {plugin}"


def kubernetes_message(phase: KubernetesPhase, *, why: str, failure: str | None = None) -> str:
    """The text of the Kubernetes event of a step."""
    match phase:
        case "created":
            return f"Successfully create eviction; reason: {why}"
        case "succeeded":
            return f"Evicted pod has been deleted physically; reason: {why}"
        case "failed":
            return f"Evict failed: {failure or 'unknown'}"


def message_of(phase: Phase, *, plugin: str, scope: str, detail: str) -> str:
    """The text of one of our own events; steps that the tutorial does not know say their reason in plain words."""
    why = met_text(plugin, scope)
    match phase:
        case "created" | "succeeded" | "failed":
            return kubernetes_message(phase, why=why, failure=detail)
        case "intended":
            return f"Intend to evict; reason: {why}"
        case "refused":
            return f"Eviction refused: {detail}; reason: {why}"
        case _:
            return f"Eviction cancelled: {detail}; reason: {why}"


def timeout_text(timeout_s: float) -> str:
    """The failure when a pod is still there after its time."""
    return f"eviction request did not complete within {figure_text(timeout_s)}s"


def figure_text(value: int | float | None) -> str:
    """A number as people write it: whole ones without a fraction."""
    if value is None:
        return "unknown"
    return str(int(value)) if float(value).is_integer() else str(value)
