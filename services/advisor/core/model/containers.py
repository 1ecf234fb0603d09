"""`Containers` remember what was asked of them: in a replay many rows of a comparison ask the same of one frame."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

C = TypeVar("C")
"""A container, in the caller's type."""
P = ParamSpec("P")
R = TypeVar("R")


class Containers(tuple[C, ...]):  # noqa: SLOT001 - a tuple cannot have any
    """The containers of one moment, with the answers of functions that were asked of them."""

    answers: dict[Hashable, Any]

    def __new__(cls, containers: tuple[C, ...] | list[C]) -> "Containers[C]":
        """Return the same containers with an empty cache."""
        made = super().__new__(cls, containers)
        made.answers = {}
        return made


def once(function: Callable[Concatenate[tuple[C, ...], P], R]) -> Callable[Concatenate[tuple[C, ...], P], R]:
    """Cache the result of a pure function for the same `Containers` and the same other arguments.

    The result is kept as long as the containers are, and shared by all callers, so callers must not change it.
    """

    @wraps(function)
    def asked(containers: tuple[C, ...], /, *others: P.args, **named: P.kwargs) -> R:
        if not isinstance(containers, Containers) or named:
            return function(containers, *others, **named)
        key = (function, others)
        answers = containers.answers
        if key not in answers:
            answers[key] = function(containers, *others, **named)
        answer: R = answers[key]
        return answer

    return asked
