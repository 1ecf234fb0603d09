"""The change of a node from one side to the other, as recorded on the Node itself, so that a new leader continues
from there.

Two annotations are needed, because labels and taints alone do not say since when a node is being emptied, nor when it
last changed.
"""

from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from services.central.core.tide.roles import Role

CHANGE, LAST = "tide.sublet.io/change", "tide.sublet.io/last-change"
MOST_CHARACTERS = 2048
MOST_WHY = 300
MOST_SKEW_S = 60.0
"""Largest difference between two machines' clocks; a time further in the future is not one of ours."""


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
    """Return how long ago a time was by this machine's clock; None: it is in the future, and unusable."""
    age_s = (now - at).total_seconds()
    return None if age_s < -MOST_SKEW_S else max(0.0, age_s)


def read_change(text: object) -> NodeChange | None:
    """Return the change in progress; None if there is none, or the annotation is unreadable and the change begins
    again."""
    return _read(NodeChange, text)


def read_last(text: object) -> LastChange | None:
    """Return the last change; None if unknown."""
    return _read(LastChange, text)


def _read(model: type[T], text: object) -> T | None:
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        return None
    try:
        return model.model_validate_json(text)
    except ValidationError:
        return None
