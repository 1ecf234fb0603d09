"""The what-if kind `gate_release`: which gated pods may go to the scheduler."""

from services.central.core.scheduling.amounts import one_spelling
from services.central.core.scheduling.gate_release import GatedPod, release
from services.central.whatif.scheduling import AREA
from services.central.whatif.scheduling.pods import Amounts
from shared.whatif.decisions import Answer, Question, decision


class WaitingPod(Question):
    """A pod that is not scheduled yet."""

    name: str
    namespace: str = ""
    priority: int = 0
    created_s: float
    gates: list[str]
    requests: Amounts


class GateReleaseQuestion(Question):
    """The own gate, what is free, and who waits."""

    gate: str
    free: Amounts
    pods: list[WaitingPod]


class GateReleaseAnswer(Answer):
    """The released pods in order; the first that waits; the gates and what is free afterwards."""

    release: list[str]
    blocked_by: str | None
    gates: dict[str, list[str]]
    free: Amounts


@decision("gate_release", area=AREA, asks=GateReleaseQuestion, answers=GateReleaseAnswer)
def gate_release(question: GateReleaseQuestion) -> GateReleaseAnswer:
    """Which gated pods may go to the scheduler?"""
    waiting = [
        GatedPod(pod.namespace, pod.name, pod.created_s, tuple(pod.gates), one_spelling(pod.requests), pod.priority)
        for pod in question.pods
    ]
    found = release(question.gate, waiting, one_spelling(question.free))
    gone = {(pod.namespace, pod.name) for pod in found.pods}
    return GateReleaseAnswer(
        release=[pod.name for pod in found.pods],
        blocked_by=None if found.blocked_by is None else found.blocked_by.name,
        gates={pod.name: [] if (pod.namespace, pod.name) in gone else pod.gates for pod in question.pods},
        free=dict(found.free),
    )
