"""Common parts of the models of the eight keys: field names as in the JSON, and types with bounds."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class SloPart(BaseModel):
    """A part of a key. An absent field is undeclared; an unknown field is kept and named."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False, alias_generator=to_camel)


Percentage = Annotated[int, Field(ge=0, le=100)]
Switch = Annotated[int, Field(ge=0, le=1)]
"""0 or 1, as the kernel's files have it."""
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Positive = Annotated[int, Field(ge=1, lt=1 << 63)]
Name = Annotated[str, Field(max_length=253)]
Word = Annotated[str, Field(max_length=4096)]
