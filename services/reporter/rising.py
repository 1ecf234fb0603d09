"""What is told of the offer: at most what is applied, less at once when that falls, more only by and by."""

import math
from typing import Any

from services.reporter.core.offer import Headroom, Offer, OfferRules, next_offer
from services.reporter.core.window import Window
from services.reporter.settings import ReporterSettings
from services.reporter.view import Offered
from shared.contracts.allocation import Allocation


class Rising:
    """One amount as it is told; the first one is told as it is."""

    def __init__(self, rules: OfferRules, period_s: float) -> None:
        self._rules, self._period_s = rules, period_s
        self._offer = Offer()
        self._sampled_s = -math.inf

    def set_rules(self, rules: OfferRules, period_s: float) -> None:
        """Go on with other rules from what was told last."""
        self._rules, self._period_s = rules, period_s

    def forget(self) -> None:
        """Begin anew: the next amount is told as it is."""
        self._offer = Offer()

    def told(self, applied: int, now_s: float, *, may_rise: bool) -> int:
        """What is told of the amount in force; without `may_rise` no more than before."""
        told = self._offer.reported
        if told is None:
            self._offer = Offer(Window.full_of(applied, now_s, self._rules.window), applied)
            self._sampled_s = now_s
        elif applied < told or (may_rise and now_s - self._sampled_s >= self._period_s):
            self._offer = next_offer(self._offer, self._rules, now_s, Headroom(applied, at_most=applied))
            self._sampled_s = now_s
        return math.floor(self._offer.reported or 0)


class Offers:
    """CPU and memory as they are told."""

    def __init__(self, settings: ReporterSettings) -> None:
        cpu, memory = _rules(settings)
        self._cpu, self._memory = Rising(cpu, settings.rise_sample_s), Rising(memory, settings.rise_sample_s)
        self._told: Offered | None = None
        self._begun = False

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        cpu, memory = _rules(settings)
        self._cpu.set_rules(cpu, settings.rise_sample_s)
        self._memory.set_rules(memory, settings.rise_sample_s)

    def look(self, allocation: Allocation | None, now_s: float, *, fresh: bool) -> Offered | None:
        """What is told of an allocation; None before the first. On an old one nothing rises.

        The floor that qrm begins with, because nothing is known yet, is no amount to rise from.
        """
        if allocation is not None:
            if not self._begun:
                self._cpu.forget()
                self._memory.forget()
                self._begun = allocation.status != "floor"
            cpu_millis = self._cpu.told(allocation.reclaimed_cpu_millis, now_s, may_rise=fresh)
            memory_bytes = self._memory.told(allocation.reclaimed_memory_bytes, now_s, may_rise=fresh)
            self._told = Offered(cpu_millis, memory_bytes)
        return self._told

    def state(self) -> dict[str, Any] | None:
        """What is told, for `status`; None before the first allocation."""
        told = self._told
        return None if told is None else {"cpu_millis": told.cpu_millis, "memory_bytes": told.memory_bytes}


def _rules(settings: ReporterSettings) -> tuple[OfferRules, OfferRules]:
    steps = (settings.max_rise_cpu_millis, settings.max_rise_memory_bytes)
    cpu, memory = (OfferRules.of(settings.rise_sample_s, settings.rise_window_s, max_step=step) for step in steps)
    return cpu, memory
