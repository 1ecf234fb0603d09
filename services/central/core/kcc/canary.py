"""The canary of a config: how many of its nodes get it now (docs/facts/katalyst-cluster.md#canary)."""

import re

from pydantic import ConfigDict, Field

from services.central.core.strict import StrictModel
from shared.errors import Refused

CANARY_FAILED = "CalculateCanaryCutoffFailed"

_PERCENT = re.compile(r"([+-]?[0-9]{1,9})%")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")


class RollingUpdate(StrictModel):
    """Nodes that get the config first: a number, or a percentage in text."""

    canary: int | str | None = None


class UpdateStrategy(StrictModel):
    """As Kubernetes writes it."""

    model_config = ConfigDict(populate_by_name=True)

    type: str | None = None
    rolling_update: RollingUpdate | None = Field(None, alias="rollingUpdate")


def canary_nodes(strategy: UpdateStrategy | None, matched: int, *, paused: bool = False) -> int:
    """Return how many of `matched` nodes get the config now: all unless the strategy says less, none while it is
    paused.

    Raises:
        Refused: `CalculateCanaryCutoffFailed`, a canary that is neither a number nor a percentage.
    """
    rolling = strategy.rolling_update if strategy else None
    share = _share(rolling.canary if rolling else None, matched)
    # Read before it is looked whether it is paused: a bad strategy is refused also while it has no effect.
    return 0 if paused else max(0, min(share, matched))


def _share(canary: int | str | None, matched: int) -> int:
    if canary is None:
        return matched
    if isinstance(canary, int):
        return canary
    if percent := _PERCENT.fullmatch(canary):
        # Rounded down, as upstream does: of few nodes a small percentage is none
        # (docs/facts/katalyst-cluster.md#canary).
        return int(percent[1]) * matched // 100
    if _NUMBER.fullmatch(canary):
        return int(canary)
    raise Refused(f"updateStrategy.rollingUpdate.canary: {canary!r}: want a number or a whole percentage such as 10%",
                  reason=CANARY_FAILED)  # fmt: skip
