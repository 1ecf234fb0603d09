"""Smooths one offered amount over time: a fall is reported at once, a rise gradually."""

import math

from services.reporter.core.smoothing import Headroom, SmoothedOffer, SmoothingRules, next_offer
from services.reporter.core.window import Window


class OfferSmoother:
    """One reported amount; the first one is reported unsmoothed."""

    def __init__(self, rules: SmoothingRules, period_s: float) -> None:
        self._rules, self._period_s = rules, period_s
        self._offer = SmoothedOffer()
        self._sampled_s = -math.inf

    def set_rules(self, rules: SmoothingRules, period_s: float) -> None:
        """Go on with other rules from what was reported last."""
        self._rules, self._period_s = rules, period_s

    def restart(self) -> None:
        """Report the next amount unsmoothed."""
        self._offer = SmoothedOffer()

    def smoothed(self, applied: int, now_s: float, *, may_rise: bool) -> int:
        """Return what is reported of the amount in force; without `may_rise` no more than before.

        A rise is sampled only once a period: allocations may follow each other quickly, and each would otherwise count
        as a sample of the window.
        """
        reported = self._offer.reported
        if reported is None:
            self._offer = SmoothedOffer(Window.full_of(applied, now_s, self._rules.window), applied)
            self._sampled_s = now_s
        elif applied < reported or (may_rise and now_s - self._sampled_s >= self._period_s):
            self._offer = next_offer(self._offer, self._rules, now_s, Headroom(applied, at_most=applied))
            self._sampled_s = now_s
        # Down: never more than is in force.
        return math.floor(self._offer.reported or 0)
