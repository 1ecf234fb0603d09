"""The what-if kind `pod_validate`: whether a pod that names Koordinator's classes is admitted."""

from typing import Any, Literal, Self

from pydantic import model_validator

from services.central.core.profiles.pod_admission import Reason, objection
from services.central.whatif.pod_amounts import PodAmounts
from services.central.whatif.profiles import AREA
from shared.whatif.decisions import Answer, Question, decision


class PodValidateQuestion(Question):
    """A pod that is created, or one that is updated with what it was before."""

    operation: Literal["CREATE", "UPDATE"]
    old_pod: PodAmounts | None = None
    pod: PodAmounts
    skip_sub_priority_check: bool = False

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        if self.operation == "UPDATE" and self.old_pod is None:
            raise ValueError("old_pod: an UPDATE needs the pod as it was")
        return self


class PodValidateAnswer(Answer):
    """Whether it is admitted, and the first reason why not."""

    allowed: bool
    reason: Reason | None
    explain: Any = None


@decision("pod_validate", area=AREA, asks=PodValidateQuestion, answers=PodValidateAnswer)
def pod_validate(question: PodValidateQuestion) -> PodValidateAnswer:
    """Is a pod with Koordinator's classes admitted?"""
    old = question.old_pod if question.operation == "UPDATE" else None
    found = objection(
        question.pod.claims,
        None if old is None else old.claims,
        sub_priority_may_change=question.skip_sub_priority_check,
    )
    if found is None:
        return PodValidateAnswer(allowed=True, reason=None)
    return PodValidateAnswer(allowed=False, reason=found.reason, explain=found.message)
