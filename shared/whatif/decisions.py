"""The registry of pure decisions that `sublet whatif` calls; `explain` and `replay` use the same functions.

A decision is registered where it is defined:

    @decision("regulate", area="cpu_sizing", asks=RegulateQuestion, answers=RegulateAnswer)
    def regulate(question: RegulateQuestion) -> RegulateAnswer:
        '''From requirement to pool size, over time.'''

The function must be pure and must call (or be) the very function that the service calls. If its rule refuses, it raises
`Refused`, whose reason is the error code of the kind.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict


class Question(BaseModel):
    """Inputs of a decision: frozen, unknown fields refused, only finite numbers, nothing converted to a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    keeps_null: ClassVar[frozenset[str]] = frozenset()
    """Names of fields, here or in a part, that hold foreign JSON: in it null is a value, not an absence."""


class Answer(BaseModel):
    """Outputs of a decision. `explain` may hold the numbers used and the rule that fired."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Q = TypeVar("Q", bound=Question)
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class DecisionKind:
    """One registered kind."""

    name: str
    area: str
    meaning: str
    inputs: type[Question]
    outputs: type[Answer]
    function: Callable[[Any], Answer]


_KINDS: dict[str, DecisionKind] = {}


def decision(
    name: str, *, area: str, asks: type[Q], answers: type[A]
) -> Callable[[Callable[[Q], A]], Callable[[Q], A]]:
    """Register a pure function as the what-if kind `name`; the first line of its docstring is its meaning.

    Raises:
        ValueError: another function holds the name, or the function has no docstring.
    """

    def register(function: Callable[[Q], A]) -> Callable[[Q], A]:
        if not function.__doc__:
            raise ValueError(f"decision {name!r}: the function needs a docstring, its first line is the meaning")
        known = _KINDS.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            raise ValueError(
                f"decision {name!r} is registered in {known.function.__module__} and {function.__module__}"
            )
        meaning = function.__doc__.strip().splitlines()[0]
        _KINDS[name] = DecisionKind(name, area, meaning, asks, answers, function)
        return function

    return register


def decisions() -> dict[str, DecisionKind]:
    """All registered kinds by name, ascending; only what has been imported is here."""
    return dict(sorted(_KINDS.items()))
