"""Types of settings and rules, each with its bounds: periods, ratios, amounts."""

from typing import Annotated

from pydantic import Field

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
"""A period or an age: above 0, at most an hour."""
Ratio = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A part of a whole."""
Multiple = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
"""How often something goes into something else: above 0, and it may be above 1."""
Percent = Annotated[int, Field(ge=1, le=100)]
"""Whole percent of something, at least one."""
Span = Annotated[float, Field(gt=0, le=86_400 * 7, allow_inf_nan=False)]
"""A period in seconds, at most a week."""
