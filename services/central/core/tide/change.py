"""The change of a node from one side to the other, as the Node itself tells it: whoever leads next goes on from there.

Two annotations, for labels and taints alone do not say since when a node is being emptied, nor when it changed last.
"""

from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from services.central.core.tide.roles import Role

CHANGE, LAST = "tide.sublet.io/change", "tide.sublet.io/last-change"
MOST_CHARACTERS = 2048
MOST_WHY = 300
MOST_SKEW_S = 60.0
"""Between the clocks of two machines; a moment that is further ahead was written by nobody of ours."""


class _Note(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


T = TypeVar("T", bound=_Note)


class NodeChange(_Note):
    """A node is on its way to a role: closed to the side that it leaves, and emptied of it."""

    pool: Annotated[str, Field(max_length=253)]
    to: Role
    since: AwareDatetime
    why: Annotated[str, Field(max_length=MOST_WHY)] = ""
    for_pod: Annotated[str, Field(max_length=512)] | None = None
    """namespace/name of the waiting pod for which it comes."""


class LastChange(_Note):
    """How and when the last change of a node ended."""

    pool: Annotated[str, Field(max_length=253)]
    at: AwareDatetime
    why: Annotated[str, Field(max_length=MOST_WHY)] = ""
    gave_up: bool = False
    """The node is what it was before: it could not be emptied, or was needed after all."""


def seconds_since(at: datetime, now: datetime) -> float | None:
    """How long ago a moment was by this machine's clock; None: it is to come, so that it says nothing."""
    age_s = (now - at).total_seconds()
    return None if age_s < -MOST_SKEW_S else max(0.0, age_s)


def read_change(text: object) -> NodeChange | None:
    """A change that is under way; None where there is none, or what is there is none, and it begins anew."""
    return _read(NodeChange, text)


def read_last(text: object) -> LastChange | None:
    """The last change; None where nothing says one."""
    return _read(LastChange, text)


def _read(model: type[T], text: object) -> T | None:
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        return None
    try:
        return model.model_validate_json(text)
    except ValidationError:
        return None
