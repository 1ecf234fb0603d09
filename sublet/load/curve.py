"""`LoadCurve` says how much of something a simulated pod wants at a time; one line of text describes it.

2.5                  2.5 from its start to its end
sine:0.5..3:60s      from 0.5 up to 3 and back within 60 seconds, again and again
square:0.5..3:60s    0.5 for the first half of 60 seconds, 3 for the second, again and again
ramp:0.5..3:60s      from 0.5 to 3 within 60 seconds, and 3 from then on
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

SHAPES = ("sine", "square", "ramp")
GRAMMAR = f"want one amount, or {'|'.join(SHAPES)}:LOW..HIGH:PERIOD"
LEAST_PERIOD_S, LONGEST_PERIOD_S = 1.0, 86_400.0
_LONGEST_TEXT = 100
_CURVE = re.compile(
    r"(?P<shape>[a-z]+):(?P<low>[^:]+?)\.\.(?P<high>[^:]+):(?P<count>\d{1,5}(\.\d{1,6})?)(?P<unit>[smh])", re.ASCII
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """An amount over time, between `low` and `high`; `shape` is one of `SHAPES`, or empty for `high` all the time."""

    low: float
    high: float
    shape: str = ""
    period_s: float = LEAST_PERIOD_S

    @classmethod
    def steady(cls, amount: float) -> "LoadCurve":
        """The same amount all the time."""
        return cls(amount, amount)

    def at(self, since_s: float) -> float:
        """The amount so many seconds after the start."""
        return self.low + (self.high - self.low) * self._part(max(0.0, since_s) / self.period_s)

    def words(self, unit: float) -> str:
        """The curve in the form in which it is written, with amounts in this unit."""
        if not self.shape:
            return f"{self.high / unit:g}"
        return f"{self.shape}:{self.low / unit:g}..{self.high / unit:g}:{self.period_s:g}s"

    def _part(self, periods: float) -> float:
        """How far up from low (0) to high (1) it is after so many periods."""
        match self.shape:
            case "sine":
                return (1.0 - math.cos(2.0 * math.pi * periods)) / 2.0
            case "square":
                return float(periods % 1.0 >= 0.5)
            case "ramp":
                return min(1.0, periods)
            case _:
                return 1.0


def read_curve(text: str, amount: Callable[[str], float], most: float) -> LoadCurve:
    """The curve of a text; `amount` reads its numbers, which lie between 0 and `most`.

    Raises:
        ValueError: it is none; the message has the text, what is wrong with it, and what is wanted.
    """
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"{text[:_LONGEST_TEXT]!r}… has {len(text)} characters, at most {_LONGEST_TEXT}; {GRAMMAR}")
    if ":" not in text:
        return LoadCurve.steady(_bounded(text, text, amount, most))
    parts = _CURVE.fullmatch(text)
    if parts is None or parts["shape"] not in SHAPES:
        raise ValueError(f"{text!r}: {GRAMMAR}, such as sine:1..3:60s")
    low, high = (_bounded(text, parts[name], amount, most) for name in ("low", "high"))
    if low > high:
        raise ValueError(f"{text!r}: LOW {parts['low']} is above HIGH {parts['high']}; exchange them")
    period_s = float(parts["count"]) * _SECONDS[parts["unit"]]
    if not LEAST_PERIOD_S <= period_s <= LONGEST_PERIOD_S:
        raise ValueError(
            f"{text!r}: PERIOD {parts['count']}{parts['unit']} is out of bounds; want "
            f"{LEAST_PERIOD_S:g}s to {LONGEST_PERIOD_S:g}s"
        )
    return LoadCurve(low, high, parts["shape"], period_s)


def _bounded(text: str, number: str, amount: Callable[[str], float], most: float) -> float:
    try:
        value = amount(number)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}; {GRAMMAR}") from None
    if not 0 <= value <= most:
        raise ValueError(f"{text!r}: {number.strip()} is out of bounds; want 0 to {most:g}")
    return value
