"""`Peak` follows the usual peak of one figure of one container with a decaying histogram."""

from dataclasses import dataclass
from typing import NamedTuple

from services.advisor.core.prediction.histogram import Buckets, Histogram

WINDOW_S = 10.0
"""The largest figure of each window is one sample: short peaks are seen, and a round costs little in between."""
NOTHING_COUNTED = Histogram()
MAX_SAMPLE_S = 60.0
"""Longest time that one sample covers, so that the last sample before an outage does not count for all of it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How a figure is counted."""

    buckets: Buckets
    percentile: float
    half_life_s: float


class Peak(NamedTuple):
    """State of one figure: what it was, the largest of the open window, and the percentile at the last sample."""

    histogram: Histogram = NOTHING_COUNTED
    opened_s: float = 0.0
    largest: float | None = None
    """None: no window is open."""
    value: float | None = None
    """Upper end of the percentile's bucket; None until the first window has ended."""

    def observe(self, figure: float, now_s: float, scale: Scale) -> "Peak":
        """The state after one more figure."""
        # The first figure, or a clock that went back: a window begins, and what is remembered stays.
        if self.largest is None or now_s < self.opened_s:
            return Peak(self.histogram, now_s, figure, self.value)
        passed_s = now_s - self.opened_s
        if passed_s < WINDOW_S:
            return self if figure <= self.largest else Peak(self.histogram, self.opened_s, figure, self.value)
        bucket = scale.buckets.index(self.largest)
        # Ages by all the time that has passed, but weighs at most a minute: a gap lets the past fade,
        # and adds no evidence.
        histogram = self.histogram.add(bucket, min(passed_s, MAX_SAMPLE_S), passed_s / scale.half_life_s)
        at = histogram.bucket_at(scale.percentile)
        return Peak(histogram, now_s, figure, None if at is None else scale.buckets.ends[at])
