"""JSON from outside, as the values that it says: bounded before it is read, and whatever is wrong with it is one error.

The parser of the standard library gives up on deep nesting with an error of another kind, lets through what is no text
(lone surrogates) and no number (NaN), and reads any size.
"""

from typing import Any

from pydantic_core import from_json

from shared.errors import Refused


def read_json(text: bytes | str, *, what: str, max_bytes: int) -> Any:
    """The value of a text that somebody else wrote; `what` names it in the error.

    Raises:
        Refused: larger than that, or not JSON.
    """
    if len(text) > max_bytes:
        raise Refused(f"{what}: {len(text)} bytes, at most {max_bytes} are read", reason="too_large")
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(f"{what}: {error}", reason="malformed") from error


def read_json_object(text: bytes | str, *, what: str, max_bytes: int) -> dict[str, Any]:
    """The same, where only an object will do.

    Raises:
        Refused: as `read_json`, or another kind of value.
    """
    found = read_json(text, what=what, max_bytes=max_bytes)
    if not isinstance(found, dict):
        raise Refused(f"{what}: want an object, got {type(found).__name__}", reason="malformed")
    return found
