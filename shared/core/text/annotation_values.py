"""Values written as text in annotations: integers, numbers, lists of ids, JSON objects and lists; each read strictly.

None, where it is allowed, stands for "not said" and is handed through.
"""

import math
import re
from typing import Any, NoReturn

from pydantic_core import from_json

from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused

INVALID = "invalid"

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_ID_LIST = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*")


def refuse(text: object, wanted: str, reason: str = INVALID) -> NoReturn:
    """Say what was written and what is wanted.

    Raises:
        Refused: always.
    """
    raise Refused(f"{text!r}: want {wanted}", reason=reason)


def integer(text: str | None) -> int | None:
    """A decimal integer.

    Raises:
        Refused: `invalid`.
    """
    if text is not None and not _INTEGER.fullmatch(text):
        refuse(text, "an integer")
    return None if text is None else int(text)


def amount(text: str | None) -> float | None:
    """A finite number of 0 or more in decimal form: no "inf", no "nan", no blanks.

    Raises:
        Refused: `invalid`.
    """
    if text is None:
        return None
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 <= number < math.inf:
        refuse(text, "a number of 0 or more")
    return number


def ids(text: str) -> list[int]:
    """Ids such as "0,2-3", ascending; the empty text names none.

    Raises:
        Refused: `invalid`.
    """
    if text and not _ID_LIST.fullmatch(text):
        refuse(text, "ids such as '0,2-3'")
    try:
        return list(CpuSet.parse(text))
    except ValueError:
        refuse(text, "ascending ranges of ids such as '0,2-3'")


def json_object(text: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        Refused: `invalid_json`, not JSON, or JSON of another kind.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(f"not JSON: {error}", reason="invalid_json") from error
    if not isinstance(value, dict):
        refuse(value, "a JSON object", "invalid_json")
    return value


def json_names(text: str) -> list[str]:
    """A JSON list of names; a null among them names nothing.

    Raises:
        Refused: `invalid_json`, not JSON, or JSON of another kind.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(f"not JSON: {error}", reason="invalid_json") from error
    if not isinstance(value, list) or not all(isinstance(name, str | None) for name in value):
        refuse(value, "a JSON list of names", "invalid_json")
    return [name for name in value if name is not None]
