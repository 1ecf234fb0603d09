"""How many of a config's nodes get it now (docs/facts/katalyst-cluster.md#canary)."""

import re
from typing import Annotated

from pydantic import ConfigDict, Field

from shared.core.decisions import Answer, Question, decision
from shared.errors import Refused

CANARY_FAILED = "CalculateCanaryCutoffFailed"

_PERCENT = re.compile(r"([+-]?[0-9]{1,9})%")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


class RollingUpdate(Question):
    """Nodes that get the config first: a number, or a percentage in text."""

    canary: int | str | None = None


class UpdateStrategy(Question):
    """As Kubernetes writes it."""

    model_config = ConfigDict(populate_by_name=True)

    type: str | None = None
    rolling_update: RollingUpdate | None = Field(None, alias="rollingUpdate")


def canary_nodes(strategy: UpdateStrategy | None, matched: int, *, paused: bool = False) -> int:
    """How many of `matched` nodes get the config now: all unless the strategy says less, none while it is paused.

    Raises:
        Refused: `CalculateCanaryCutoffFailed`, a canary that is neither a number nor a percentage.
    """
    rolling = strategy.rolling_update if strategy else None
    share = _share(rolling.canary if rolling else None, matched)
    return 0 if paused else max(0, min(share, matched))


def _share(canary: int | str | None, matched: int) -> int:
    if canary is None:
        return matched
    if isinstance(canary, int):
        return canary
    if percent := _PERCENT.fullmatch(canary):
        return int(percent[1]) * matched // 100
    if _NUMBER.fullmatch(canary):
        return int(canary)
    raise Refused(f"updateStrategy.rollingUpdate.canary: {canary!r}: want a number or a whole percentage such as 10%",
                  reason=CANARY_FAILED)  # fmt: skip


class CanaryQuestion(Question):
    """How a config is rolled out, and over how many nodes."""

    update_strategy: UpdateStrategy | None = None
    matched_nodes: Annotated[int, Field(ge=0)]
    paused: bool = False


class CanaryAnswer(Answer):
    """How many nodes get the new config now."""

    canary_nodes: int
    error: str | None = None
    message: str | None = None


@decision("canary_cutoff", area="kcc", asks=CanaryQuestion, answers=CanaryAnswer)
def canary_cutoff(question: CanaryQuestion) -> CanaryAnswer:
    """How many of the matched nodes get the new config now."""
    return CanaryAnswer(
        canary_nodes=canary_nodes(question.update_strategy, question.matched_nodes, paused=question.paused)
    )
