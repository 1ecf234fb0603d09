"""The what-if kind `paced_actions`: when the items of a full queue are acted on."""

import math
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from services.central.core.lost_nodes.pacing import Pace
from shared.core.evictions.intents import TokenBucket
from shared.whatif.decisions import Answer, Question, decision


def next_action(pace: Pace, bucket: TokenBucket) -> tuple[float, TokenBucket] | None:
    """When the next action may be taken and the bucket after it; None: never."""
    if pace.per_s <= 0 or pace.burst < 1:
        return None
    at_s = bucket.at_s + max(0.0, 1 - bucket.tokens) / pace.per_s
    while (left := pace.spend(bucket, at_s)) is None:
        at_s = math.nextafter(at_s, math.inf)  # the division rounded down by a last digit
    return at_s, left


def moments(pace: Pace, count: int) -> Iterator[float]:
    """When `count` items are acted on that were all queued at 0 before a full bucket; none at a pace of 0."""
    bucket = TokenBucket(pace.burst, 0.0)
    for _ in range(count):
        following = next_action(pace, bucket)
        if following is None:
            return
        at_s, bucket = following
        yield at_s


class PacedQuestion(Question):
    """A pace and a full queue."""

    actions_per_s: Annotated[float, Field(ge=0)]
    burst: Annotated[int, Field(ge=0)]
    count: Annotated[int, Field(ge=0, le=1_000_000)]


class PacedAnswer(Answer):
    """When each item is acted on, to the second."""

    at_s: list[int]


@decision("paced_actions", area="central", asks=PacedQuestion, answers=PacedAnswer)
def paced_actions(question: PacedQuestion) -> PacedAnswer:
    """When the items of a full queue are acted on."""
    pace = Pace(question.actions_per_s, question.burst)
    return PacedAnswer(at_s=[_whole(at_s) for at_s in moments(pace, question.count)])


def _whole(at_s: float) -> int:
    """Halves go up, also where binary fractions fall a hair short of them."""
    return math.floor(round(at_s, 6) + 0.5)
