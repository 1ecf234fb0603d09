"""The hash that identifies a config, over the canonical text that Go writes.

Compact JSON with sorted keys, nulls kept, numbers and strings as Go's encoder spells them.

Facts: docs/facts/katalyst-cluster.md#hash-of-a-config.
"""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

HASH_DIGITS = 12

_ESCAPED = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_LARGEST_INT = (1 << 63) - 1
_PLAIN_FROM, _PLAIN_BELOW = 1e-6, 1e21  # between them Go writes a float without an exponent


def hash_of(config: Mapping[str, Any] | None) -> str:
    """The first 12 hex digits of the SHA-256 over the config's canonical text; no config is an empty one."""
    return hashlib.sha256(canonical(config or {}).encode()).hexdigest()[:HASH_DIGITS]


def canonical(value: Any) -> str:
    """The one spelling of a JSON value."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    # Larger ones are floats to Go's decoder, and are spelled as such.
    if isinstance(value, int) and -_LARGEST_INT - 1 <= value <= _LARGEST_INT:
        return str(value)
    return _number(float(value))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).translate(_ESCAPED)


def _number(number: float) -> str:
    """The shortest digits that mean the number: 5.0 is 5, 1e-7 has one digit of exponent."""
    shortest = repr(number)
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        plain = format(Decimal(shortest), "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    return shortest.replace("e-0", "e-")
