"""`copier` copies data classes with some fields changed, for paths that run for every frame of a replay.

`dataclasses.replace` looks at every field of the class anew for each copy, which takes several times as long.
"""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def copier(kind: type[T], *names: str) -> Callable[..., T]:
    """A function of an object of this class and new values for these fields, in this order."""
    every = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    values_of: Callable[[T], tuple[Any, ...]] = attrgetter(*every)
    places = [every.index(name) for name in names]

    def copy(like: T, *changed: object) -> T:
        values = [*values_of(like)]
        for place, value in zip(places, changed, strict=True):
            values[place] = value
        return kind(*values)

    return copy
