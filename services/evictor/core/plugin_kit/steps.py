"""Sequences of moments in questions, and samples kept in a ring."""

from collections.abc import Sequence
from typing import Annotated, Protocol, TypeVar

from pydantic import AfterValidator, Field


class _Moment(Protocol):
    @property
    def t_s(self) -> float: ...


M = TypeVar("M", bound=_Moment)


def in_time(steps: list[M]) -> list[M]:
    """Steps of which none lies before the one ahead of it.

    Raises:
        ValueError: `t_s` goes back.
    """
    times = [step.t_s for step in steps]
    if times != sorted(times):
        raise ValueError("t_s goes back")
    return steps


InTime = AfterValidator(in_time)
RingSize = Annotated[int, Field(ge=1)]
NumaKey = Annotated[str, Field(pattern=r"^(-1|\d{1,6})$")]
"""A NUMA node as the key of a map."""
Samples = list[Annotated[float, Field(ge=0)]]
"""Measured one after the other, oldest first."""


def newest(samples: Sequence[float], ring_size: int) -> Sequence[float]:
    """What a ring of that size holds of them."""
    return samples[-ring_size:]


def mean(samples: Sequence[float]) -> float | None:
    """None of nothing: absent is not zero."""
    return sum(samples) / len(samples) if samples else None


def often_enough(count: int, ring_size: int, met_ratio: float) -> bool:
    """Whether so many of a full ring are enough: a ring that is not yet full has its missing samples against it."""
    return count / ring_size >= met_ratio
