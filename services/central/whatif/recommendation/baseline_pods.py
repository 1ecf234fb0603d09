"""The what-if kind `baseline_pods`: which pods of a service are its baseline."""

from services.central.core.recommendation.baseline import ServicePod, baseline_of
from shared.whatif.decisions import Answer, Question, decision


class PodOfService(Question):
    """A pod; inactive ones have ended or are on their way out."""

    name: str
    created_s: float
    active: bool = True


class BaselineQuestion(Question):
    """The pods of a service, and the share that is its baseline."""

    percent: int | None = None
    pods: list[PodOfService]


class BaselineAnswer(Answer):
    """The youngest pod of a share, and all pods up to it."""

    sentinel: str | None
    baseline: list[str]


@decision("baseline_pods", area="recommendation", asks=BaselineQuestion, answers=BaselineAnswer)
def baseline_pods(question: BaselineQuestion) -> BaselineAnswer:
    """Which pods of a service are its baseline?"""
    found = baseline_of(question.percent, [ServicePod(pod.created_s, pod.name, pod.active) for pod in question.pods])
    return BaselineAnswer(sentinel=None if found.sentinel is None else found.sentinel.name, baseline=list(found.pods))
