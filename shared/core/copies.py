"""`copier` copies data classes with some fields changed, for paths that run for every frame of a replay.

`dataclasses.replace` looks at every field of the class anew for each copy, and the `__init__` of a frozen class sets
each one by its name: together that takes three times as long.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def copier(kind: type[T], *names: str) -> Callable[..., T]:
    """A function of an object of this class, whose fields are slots, and new values for these fields, in this order.

    Raises:
        ValueError: there is no such field.
        TypeError: the class has something that a copy of its fields alone would leave out.
    """
    every = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if unknown := [name for name in names if name not in every]:
        raise ValueError(f"{kind.__name__} has no field {', '.join(unknown)}; it has {', '.join(every)}")
    if hasattr(kind, "__post_init__") or kind.__dictoffset__:
        raise TypeError(f"{kind.__name__}: want a data class with slots and without __post_init__; use replace")
    kept = [name for name in every if name not in names]
    setters = [getattr(kind, name).__set__ for name in (*names, *kept)]
    kept_of = _values_of(kept)
    new = object.__new__

    def copy(like: T, *changed: object) -> T:
        made = new(kind)
        for set_field, value in zip(setters, changed + kept_of(like), strict=True):
            set_field(made, value)
        return made

    return copy


def _values_of(names: Sequence[str]) -> Callable[[object], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    # Of one name it gives no tuple, and without any there is none.
    return lambda like: tuple([getattr(like, name) for name in names])
