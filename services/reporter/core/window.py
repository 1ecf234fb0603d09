"""Average samples over a window, and move the value in limited steps.

Facts: docs/facts/katalyst-cpu.md#reported-headroom.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class WindowRules:
    """Samples that make a value, how long each counts, and how far the value moves at once; in the caller's unit."""

    size: int
    ttl_s: float | None = None
    """None: for ever."""
    percentile: float | None = None
    """None: the average of the samples."""
    min_step: float = 0.0
    """A smaller change is not made."""
    max_step: float | None = None
    """A larger change is cut to this; None: any change is made."""

    @classmethod
    def over(cls, period_s: float, window_s: float, *, min_step: float = 0.0, max_step: float | None = None) -> Self:
        """The average over `window_s` with a sample every `period_s`; a sample counts for twice the window."""
        # Rounded first: 0.3 / 0.1 is a little less than 3 in binary fractions.
        size = max(1, math.floor(round(window_s / period_s, 9)))
        return cls(size, 2 * window_s, None, min_step, max_step)


@dataclass(frozen=True, slots=True)
class Window:
    """The newest samples with their times, oldest first, and the value they gave last."""

    samples: tuple[tuple[float, float], ...] = ()
    value: float | None = None
    """None until the window was full for the first time."""

    @classmethod
    def full_of(cls, sample: float, now_s: float, rules: WindowRules) -> Self:
        """A window that has seen nothing but this sample, and as often as it needs."""
        return cls(((now_s, sample),) * rules.size, sample)


def moved(window: Window, rules: WindowRules, now_s: float, sample: float) -> Window:
    """The window with one sample more. Its value stays while fewer samples than its size still count."""
    samples = (*window.samples, (now_s, sample))[-rules.size :]
    valid = [value for at_s, value in samples if rules.ttl_s is None or now_s - at_s < rules.ttl_s]
    if len(valid) < rules.size:
        return Window(samples, window.value)
    return Window(samples, _limited(window.value, _aggregate(valid, rules.percentile), rules))


def _aggregate(values: Sequence[float], percentile: float | None) -> float:
    if percentile is None:
        return math.fsum(values) / len(values)
    rank = max(1, math.ceil(round(percentile * len(values) / 100, 9)))
    return sorted(values)[min(rank, len(values)) - 1]


def _limited(before: float | None, now: float, rules: WindowRules) -> float:
    if before is None:
        return now
    step = abs(now - before)
    # A step of exactly the least size is taken, whatever the last binary digit says.
    if step < rules.min_step and not math.isclose(step, rules.min_step, rel_tol=1e-9):
        return before
    if rules.max_step is not None and step > rules.max_step:
        return before + math.copysign(rules.max_step, now - before)
    return now
