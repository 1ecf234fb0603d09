"""Kubernetes quantities: ``500m``, ``44k``, ``256Mi`` to and from integers.

Two readings exist: `parse_millis` for CPU ("1" is 1000) and `parse_units` for everything else ("44k" is 44000,
which is how Katalyst writes milli-CPU: docs/facts/katalyst-cluster.md#two-spellings).
"""

import re
from decimal import ROUND_CEILING, Decimal, InvalidOperation

_SUFFIX = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)([numkMGTPE]|[KMGTPE]i|)$", re.ASCII)


def _parse(text: str | int | float) -> Decimal:
    match = _QUANTITY.match(str(text).strip())
    if match is None:
        raise ValueError(f"quantity {text!r}: want a number with an optional suffix such as m, k, M, Mi or Gi")
    try:
        return Decimal(match[1]) * _SUFFIX[match[2]]
    except InvalidOperation as error:  # pragma: no cover - the pattern admits only numbers
        raise ValueError(f"quantity {text!r}: not a number") from error


def parse_units(text: str | int | float) -> int:
    """Whole units (bytes, pieces, reclaimed milli-CPU), rounded up as the API server does.

    Raises:
        ValueError: not a quantity.
    """
    return int(_parse(text).to_integral_value(ROUND_CEILING))


def is_fraction(text: str | int | float) -> bool:
    """Whether a quantity is no whole number of units, as `64m` bytes.

    Raises:
        ValueError: not a quantity.
    """
    amount = _parse(text)
    return amount != amount.to_integral_value()


def parse_millis(text: str | int | float) -> int:
    """Thousandths (milli-CPU): "1" is 1000, "250m" is 250; rounded up.

    Raises:
        ValueError: not a quantity.
    """
    return int((_parse(text) * 1000).to_integral_value(ROUND_CEILING))


def format_units(value: int) -> str:
    """The canonical decimal form of the API server: 44000 is "44k", 195257901056 stays as it is."""
    for suffix in ("E", "P", "T", "G", "M", "k"):
        factor = int(_SUFFIX[suffix])
        if value and value % factor == 0:
            return f"{value // factor}{suffix}"
    return str(value)


def format_millis(value: int) -> str:
    """CPU in the API server's form: 2000 is "2", 250 is "250m"."""
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"
