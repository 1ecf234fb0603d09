"""Types of fields that several questions have: moments in order, rings of samples, NUMA nodes as keys."""

from typing import Annotated, Protocol, TypeVar

from pydantic import AfterValidator, Field


class _Moment(Protocol):
    @property
    def t_s(self) -> float: ...


M = TypeVar("M", bound=_Moment)


def in_time(steps: list[M]) -> list[M]:
    """Return steps in ascending order of time.

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
Ratio = Annotated[float, Field(allow_inf_nan=False)]
Amount = Annotated[int, Field(ge=0)]
CoreAmount = Annotated[float, Field(ge=0)]
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A whole number as Kubernetes' objects hold it."""
