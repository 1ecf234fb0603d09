"""The what-if kind `extender_reply`: what the stock scheduler is answered."""

from typing import Any, ClassVar, Literal

from services.central.core.scheduling.extender_reply import (
    ExtenderRequest,
    NodeStanding,
    filter_reply,
    prioritize_reply,
)
from services.central.whatif.scheduling import AREA
from shared.whatif.decisions import Answer, Question, decision


class SaidOfNode(Question):
    """What is known of a node."""

    fits: bool
    reason: str = ""
    unresolvable: bool = False


class ExtenderReplyQuestion(Question):
    """A body of the scheduler, and what is known of the nodes."""

    keeps_null: ClassVar[frozenset[str]] = frozenset({"request"})

    verb: Literal["filter", "prioritize"]
    request: Any
    verdicts: dict[str, SaidOfNode] = {}
    scores: dict[str, int] = {}


class ExtenderReplyAnswer(Answer):
    """The body to send."""

    reply: Any


@decision("extender_reply", area=AREA, asks=ExtenderReplyQuestion, answers=ExtenderReplyAnswer)
def extender_reply(question: ExtenderReplyQuestion) -> ExtenderReplyAnswer:
    """The answer to a call of the stock scheduler, on the wire."""
    request = ExtenderRequest.read(question.request)
    if question.verb == "prioritize":
        return ExtenderReplyAnswer(reply=prioritize_reply(request, question.scores))
    verdicts = {
        name: NodeStanding(said.fits, said.reason, said.unresolvable) for name, said in question.verdicts.items()
    }
    return ExtenderReplyAnswer(reply=filter_reply(request, verdicts))
