"""Turns a label selector of an object, `matchLabels` and `matchExpressions`, into one that can be evaluated."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from services.central.core.kcc.selectors import Operator, Requirement, Selector
from shared.core.pydantic_words import first_fault
from shared.errors import Refused

MAX_PARTS = 20
"""Of a selector; also values of one expression."""
LabelText = Annotated[str, Field(max_length=317)]
"""A prefix of 253 characters, a slash, a name of 63."""
_OPERATORS: dict[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


class _Expression(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    key: LabelText
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[LabelText], Field(max_length=MAX_PARTS)] = []


class _LabelSelector(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)

    match_labels: Annotated[dict[LabelText, LabelText], Field(max_length=MAX_PARTS)] = {}
    match_expressions: Annotated[list[_Expression], Field(max_length=MAX_PARTS)] = []


def read_label_selector(document: object) -> Selector:
    """The selector that a document describes.

    Raises:
        Refused: `selector`, with the field and what is wanted there.
    """
    try:
        read = _LabelSelector.model_validate(document)
    except ValidationError as error:
        raise Refused(first_fault(error, whole="the selector"), reason="selector") from None
    parts = [Requirement(key, "in", frozenset({value})) for key, value in sorted(read.match_labels.items())]
    for part in read.match_expressions:
        if (part.operator in ("In", "NotIn")) != bool(part.values):
            wanted = "at least one value" if part.operator in ("In", "NotIn") else "no values"
            raise Refused(f"{part.operator} of {part.key!r}: want {wanted}", reason="selector")
        parts.append(Requirement(part.key, _OPERATORS[part.operator], frozenset(part.values)))
    return Selector(tuple(parts))
