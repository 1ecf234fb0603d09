"""Smooth the node's offer of CPU and memory, by the settings of the reporter."""

from typing import Any

from services.reporter.core.field import Offered
from services.reporter.core.offer_smoother import OfferSmoother
from services.reporter.settings import ReporterSettings, rise_rules
from shared.contracts.allocation import Allocation

NOTHING = Offered(0, 0)


class ReclaimedNodeOffer:
    """CPU and memory as they are reported: at most what is applied."""

    def __init__(self, settings: ReporterSettings) -> None:
        cpu, memory = rise_rules(settings)
        self._cpu = OfferSmoother(cpu, settings.rise_sample_s)
        self._memory = OfferSmoother(memory, settings.rise_sample_s)
        self._offered: Offered | None = None
        self._begun = False

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        cpu, memory = rise_rules(settings)
        self._cpu.set_rules(cpu, settings.rise_sample_s)
        self._memory.set_rules(memory, settings.rise_sample_s)

    def smoothed(
        self, allocation: Allocation | None, now_s: float, *, fresh: bool, withheld: Offered = NOTHING
    ) -> Offered | None:
        """Return what is reported of an allocation, minus what is withheld; None before the first allocation.

        A stale allocation never raises the offer.

        The floor that qrm begins with means that nothing is known yet. A smooth rise from the floor would hide the real
        offer for a while, so the first amount above the floor is reported unsmoothed.
        """
        if allocation is not None:
            if not self._begun:
                self._cpu.restart()
                self._memory.restart()
                self._begun = allocation.status != "floor"
            cpu_millis = max(0, allocation.reclaimed_cpu_millis - withheld.cpu_millis)
            memory_bytes = max(0, allocation.reclaimed_memory_bytes - withheld.memory_bytes)
            cpu_millis = self._cpu.smoothed(cpu_millis, now_s, may_rise=fresh)
            memory_bytes = self._memory.smoothed(memory_bytes, now_s, may_rise=fresh)
            self._offered = Offered(cpu_millis, memory_bytes)
        return self._offered

    def state(self) -> dict[str, Any] | None:
        """Return what is reported, for `status`; None before the first allocation."""
        offered = self._offered
        return None if offered is None else {"cpu_millis": offered.cpu_millis, "memory_bytes": offered.memory_bytes}
