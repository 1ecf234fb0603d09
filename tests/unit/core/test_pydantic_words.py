"""What pydantic found wrong, in our words: no fault of any kind of field shows a word of the library."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from shared.core.pydantic_words import field_faults, first_fault

FOREIGN = ("Input", "should", "Value error", "constrained", "literal[", "unable", "Field required", "Extra", "pydantic")


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Everything(BaseModel):
    model_config = ConfigDict(extra="forbid")
    whole: Annotated[int, Field(ge=1, le=9)] = 1
    number: Annotated[float, Field(gt=0, lt=10, allow_inf_nan=False)] = 1.0
    auto: Literal["auto"] | Annotated[float, Field(ge=0)] = "auto"
    word: Literal["observe", "enforce"] = "observe"
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")] = "a"
    short: Annotated[str, Field(max_length=3)] = ""
    few: Annotated[tuple[int, ...], Field(max_length=2)] = ()
    inner: Inner = Inner(a=1)
    maybe: Inner | None = None
    mapping: dict[str, dict[str, int]] = {}
    truth: bool = False
    path: Path = Path("/")
    at: AwareDatetime | None = None
    naive: datetime | None = None
    names: frozenset[str] = frozenset()

    @model_validator(mode="after")
    def _not_nine(self) -> "Everything":
        if self.whole == 9:
            raise ValueError("want another one than 9")
        return self


def faults(given: object) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Everything.model_validate(given)
    return {".".join(fault.path): fault.wish for fault in field_faults(caught.value)}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"whole": 0}, {"whole": "want at least 1"}),
        ({"whole": 1.5}, {"whole": "want a whole number"}),
        ({"whole": "x"}, {"whole": "want a whole number"}),
        ({"whole": 9}, {"": "want another one than 9"}),
        ({"number": 10}, {"number": "want less than 10"}),
        ({"number": float("nan")}, {"number": "want a finite number"}),
        ({"auto": -1}, {"auto": "want 'auto' or at least 0"}),
        ({"auto": "x"}, {"auto": "want 'auto' or a number"}),
        ({"word": "enforc"}, {"word": "want 'observe' or 'enforce'; did you mean 'enforce'?"}),
        ({"name": "A"}, {"name": "want a DNS name: lower-case letters, digits, '-' and '.', at most 253"}),
        ({"short": "abcd"}, {"short": "want at most 3 characters"}),
        ({"few": [1, 2, 3]}, {"few": "want at most 2 items"}),
        ({"few": 1}, {"few": "want a list"}),
        ({"inner": {}}, {"inner.a": "must be given"}),
        ({"inner": {"a": 1, "b": 2}}, {"inner.b": "no such field"}),
        ({"inner": 3}, {"inner": "want a mapping of keys to values"}),
        ({"maybe": {"a": "x"}}, {"maybe.a": "want a whole number"}),
        ({"mapping": {"x": {"y": "z"}}}, {"mapping.x.y": "want a whole number"}),
        ({"mapping": {3: {}}}, {"mapping.3": "want a name as the key; put it into quotes"}),
        ({"truth": 7}, {"truth": "want true or false"}),
        ({"path": 3}, {"path": "want a path"}),
        ({"at": "2026-01-01T00:00:00"}, {"at": "want a moment with its time zone, as in 2026-01-31T12:00:00Z"}),
        ({"at": "soon"}, {"at": "want a moment, as in 2026-01-31T12:00:00Z"}),
        ({"names": 3}, {"names": "want a list"}),
        (3, {"": "want a mapping of keys to values"}),
    ],
)
def test_a_fault_is_said_with_what_is_wanted(given: object, said: dict[str, str]) -> None:
    assert faults(given) == said


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*Everything.model_fields, "other"]), values, min_size=1))
def test_whatever_is_wrong_no_word_of_the_library_is_shown(given: dict[str, Any]) -> None:
    try:
        Everything.model_validate(given)
    except ValidationError as error:
        said = [fault.wish for fault in field_faults(error)]
        assert [word for word in FOREIGN for wish in said if word in wish] == []
        assert "cannot be used" not in said
        assert first_fault(error)  # noqa: PT017
