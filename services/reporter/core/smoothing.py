"""Lets the reported amount follow the headroom: down at once, up smoothly.

A scheduler that places pods on a figure that is too high causes evictions; a figure that is too low for a while costs
nothing.

Facts: docs/facts/katalyst-cpu.md#reported-headroom.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

from services.reporter.core.window import Window, WindowRules, moved

Fall = Literal["smooth", "at_once"]


@dataclass(frozen=True, slots=True)
class SmoothingRules:
    """How a reported amount moves; amounts are in the caller's unit."""

    window: WindowRules
    fall: Fall = "at_once"
    negligible: float = 0.0
    """Less than this is nothing."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """The headroom at one moment, and how much of it may be reported."""

    amount: float | None
    """None: not known; the last report stays."""
    reserved: float = 0.0
    """Never reported."""
    least: float = 0.0
    """Reported at least."""
    enabled: bool = True
    """Whether anything is lent at all."""
    at_most: float | None = None
    """Nothing above this is reported; None: no such bound."""

    @property
    def sample(self) -> float | None:
        """Return what is left without the reserve."""
        return None if self.amount is None else self.amount - self.reserved


@dataclass(frozen=True, slots=True)
class SmoothedOffer:
    """The samples so far, and what is reported of them; None: nothing yet."""

    window: Window = field(default_factory=Window)
    reported: float | None = None


def next_offer(offer: SmoothedOffer, rules: SmoothingRules, now_s: float, headroom: Headroom) -> SmoothedOffer:
    """Return the report after one sample of the headroom.

    `at_once`: a sample below the last report is reported unsmoothed, and the value rises from there.
    """
    window, sample = offer.window, headroom.sample
    if sample is not None:
        window = moved(window, rules.window, now_s, sample)
        # The value and not the samples: a rise continues from here by its steps, and does not jump back with the next
        # average.
        if rules.fall == "at_once" and offer.reported is not None and sample < offer.reported:
            window = replace(window, value=sample)
    # An average lags: after a fall it would still offer what no longer exists.
    if headroom.at_most is not None and window.value is not None:
        window = replace(window, value=min(window.value, headroom.at_most))
    return SmoothedOffer(window, _told(window.value, rules, headroom))


def _told(value: float | None, rules: SmoothingRules, headroom: Headroom) -> float | None:
    if not headroom.enabled:
        return 0.0
    if value is None:
        return None
    amount = max(value, headroom.least)
    return amount if amount > 0 and amount >= rules.negligible else 0.0
