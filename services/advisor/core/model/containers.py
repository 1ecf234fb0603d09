"""`Containers` remember what was asked of them, and may know their CPU figures as columns.

In a replay many rows of a comparison ask the same of one frame, and most of them ask for figures alone: a container
itself is then made only for whoever looks at it.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, overload

C = TypeVar("C")
"""A container, in the caller's type."""
P = ParamSpec("P")
R = TypeVar("R")
Column = Sequence[float | None]


class CpuColumns(NamedTuple):
    """CPU use in cores and load averages, each in the order of the containers; None where not measured."""

    usage: Column
    load1: Column
    load5: Column


class Containers(Sequence[C]):
    """The containers of one moment, with the answers of functions that were asked of them. Equal to a tuple of them."""

    __slots__ = ("_made", "_make", "answers", "cpu", "like")

    def __init__(self, containers: Iterable[C] = ()) -> None:
        self._made = tuple(containers)
        self._make: Callable[[], Iterable[C]] | None = None
        self.answers: dict[Hashable, Any] = {}
        self.cpu: CpuColumns | None = None
        """None: nobody asked for them yet."""
        self.like: Containers[C] | None = None
        """Containers that differ from these in their CPU figures alone; None: no others are known."""

    @classmethod
    def measured(cls, like: "Containers[C]", cpu: CpuColumns, make: Callable[[], Iterable[C]]) -> "Containers[C]":
        """Containers like others with these figures; `make` makes them when they are first looked at."""
        made: Containers[C] = cls()
        made._make, made.cpu, made.like = make, cpu, like if like.like is None else like.like
        return made

    def _all(self) -> tuple[C, ...]:
        if self._make is not None:
            self._made, self._make = tuple(self._make()), None
        return self._made

    @overload
    def __getitem__(self, index: int) -> C: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[C, ...]: ...
    def __getitem__(self, index: int | slice) -> C | tuple[C, ...]:
        """One of them, or some."""
        return self._all()[index]

    def __iter__(self) -> Iterator[C]:
        """Each of them."""
        return iter(self._all())

    def __len__(self) -> int:
        """How many there are."""
        return len(self._made) if self.cpu is None else len(self.cpu.usage)

    def __eq__(self, other: object) -> bool:
        """As the tuple of them."""
        return self._all() == (other._all() if isinstance(other, Containers) else other)

    def __hash__(self) -> int:
        """As the tuple of them."""
        return hash(self._all())

    def __repr__(self) -> str:
        """As the tuple of them."""
        return repr(self._all())


def once(function: Callable[Concatenate[Sequence[C], P], R]) -> Callable[Concatenate[Sequence[C], P], R]:
    """Cache the result of a pure function for the same `Containers` and the same other arguments.

    The result is kept as long as the containers are, and shared by all callers, so callers must not change it.
    """

    @wraps(function)
    def asked(containers: Sequence[C], /, *others: P.args, **named: P.kwargs) -> R:
        if type(containers) is not Containers or named:
            return function(containers, *others, **named)
        return _answer(containers, function, others)

    return asked


def once_beside_cpu(function: Callable[Concatenate[Sequence[C], P], R]) -> Callable[Concatenate[Sequence[C], P], R]:
    """The same for a function that looks at no CPU figures: the result holds for all `Containers` that are alike."""

    @wraps(function)
    def asked(containers: Sequence[C], /, *others: P.args, **named: P.kwargs) -> R:
        if type(containers) is not Containers or named:
            return function(containers, *others, **named)
        return _answer(containers if containers.like is None else containers.like, function, others)

    return asked


def _answer(containers: Containers[C], function: Callable[..., R], others: tuple[Any, ...]) -> R:
    key, answers = (function, others), containers.answers
    if key not in answers:
        answers[key] = function(containers, *others)
    answer: R = answers[key]
    return answer
