"""A curve of any length in as many columns as a screen can show; no violation is lost by it."""

import math
from dataclasses import dataclass

from sublet.replay.judging.total import Curve

MAX_BINS = 480


@dataclass(frozen=True, slots=True)
class Bin:
    """Some frames in one column: the largest demand, the smallest room, the mean offer, whether any was violated."""

    from_s: float
    to_s: float
    wanted_cores: float
    room_cores: float
    offered_cores: float
    missing_cores: float
    violated: bool


def bins(curve: Curve, most: int = MAX_BINS) -> list[Bin]:
    """The curve in at most so many columns; each value holds for the time that ends with it."""
    size = max(1, math.ceil(len(curve.at_s) / most))
    found = []
    for first in range(0, len(curve.at_s), size):
        part = slice(first, first + size)
        wanted, room = curve.wanted_cores[part], curve.room_cores[part]
        start_s = curve.at_s[first - 1] if first else curve.start_s
        found.append(
            Bin(
                from_s=start_s,
                to_s=curve.at_s[part][-1],
                wanted_cores=max(wanted),
                room_cores=min(room),
                offered_cores=math.fsum(curve.offered_cores[part]) / len(wanted),
                missing_cores=max(w - r for w, r in zip(wanted, room, strict=True)),
                violated=any(curve.violated[part]),
            )
        )
    return found
