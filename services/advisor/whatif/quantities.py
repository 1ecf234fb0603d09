"""Quantities bound the numbers in the advisor's questions."""

from typing import Annotated

from pydantic import Field

Cores = Annotated[float, Field(ge=-1e6, le=1e6)]
NonNegativeCores = Annotated[float, Field(ge=0, le=1e6)]
Cpus = Annotated[int, Field(ge=0, le=1_000_000)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Ratio = Annotated[float, Field(ge=0, le=1e6)]
ByteCount = Annotated[int, Field(ge=0, le=1 << 60)]
ScaleFactor = Annotated[float, Field(ge=0, le=10_000)]
NumaId = Annotated[int, Field(ge=0, le=8191)]
