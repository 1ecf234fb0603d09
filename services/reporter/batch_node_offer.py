"""Offers Koordinator's batch resources over time.

Every tick of the reporter checks the time, so an offer ends even if no message arrives any more.
"""

from dataclasses import asdict, replace
from typing import Any

from services.reporter.core.batch_demand import BatchOffer, ColocationStrategy, batch_offer
from services.reporter.core.batch_resources import degraded
from services.reporter.core.batch_zones import batch_by_numa
from services.reporter.core.field import NumaShare, Offered
from services.reporter.core.node_capacity import NodeCapacity
from services.reporter.offer_over_time import ColocationInput, OfferOverTime
from services.reporter.settings import ReporterSettings
from shared.contracts.sample import NodeSample


class BatchNodeOffer:
    """Both batch resources as they are reported; nothing unless the settings say so."""

    def __init__(self, settings: ReporterSettings) -> None:
        self._settings = settings
        self._offer = OfferOverTime(settings)
        self._found: BatchOffer | None = None
        self._capacity: NodeCapacity | None = None
        self._strategy = settings.batch.strategy
        self.unread: tuple[str, ...] = ()
        """Declarations of the Node that cannot be followed; empty while nothing is to be offered."""

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        self._settings = settings
        self._offer.reconfigure(settings)

    def smoothed(self, seen: ColocationInput, withheld: Offered, now_s: float) -> Offered | None:
        """Return what is reported now; None if nothing is offered, which differs from an offer of 0.

        `withheld`: the part of the idle resources that was sold to others.
        """
        batch, node = self._settings.batch, seen.override
        degrade_after_s = node.degrade_after_s or batch.degrade_after_s
        self.unread = node.unread if batch.enabled else ()
        if not batch.enabled or node.off or degraded(seen.sample_age_s, degrade_after_s):
            self._end()
        elif seen.sample_age_s is not None and seen.sample_age_s <= self._settings.max_sample_age_s:
            strategy = replace(batch.strategy, mid_is_sold=self._settings.mid.enabled, **node.batch)
            self._follow(seen, strategy, withheld, now_s)
        # Samples that come and say too little are no better than none.
        if self._offer.reported is not None and degraded(self._offer.unheard_s(now_s), degrade_after_s):
            self._end()
        if self._capacity is not None:
            self.unread += self._capacity.unread
        return self._offer.reported

    def by_numa(self, seen: ColocationInput) -> dict[int, NumaShare]:
        """Return the reported offer by NUMA node; empty unless enabled, or if it is unknown."""
        reported, sample, given = self._offer.reported, seen.sample, seen.allocation
        if not self._settings.batch.by_numa or reported is None or sample is None or given is None:
            return {}
        return batch_by_numa(reported, sample, given, self._strategy.memory_reclaim_percent)

    def state(self) -> dict[str, Any] | None:
        """Return the reported offer and its terms, for `explain`; None if nothing is offered."""
        reported, found, strategy = self._offer.reported, self._found, self._strategy
        if reported is None or found is None or self._capacity is None:
            return None
        return {
            "cpu_millis": reported.cpu_millis,
            "memory_bytes": reported.memory_bytes,
            "cpu": {"policy": strategy.cpu_policy, "amount": found.cpu_millis, **asdict(found.cpu)},
            "memory": {"policy": strategy.memory_policy, "amount": found.memory_bytes, **asdict(found.memory)},
            "cpu_normalization_ratio": self._capacity.cpu_normalization_ratio,
            "unread": list(self.unread),
        }

    def _end(self) -> None:
        self._offer.end()
        self._found = self._capacity = None

    def _follow(self, seen: ColocationInput, strategy: ColocationStrategy, withheld: Offered, now_s: float) -> None:
        capacity = seen.capacity
        found = _found(seen.sample, capacity, strategy)
        # One sample without a figure is no reason to take anything away: time does that.
        if found is None:
            return
        self._found, self._capacity, self._strategy = found, capacity, strategy
        offered = Offered(found.cpu_millis, found.memory_bytes)
        # Whatever the formula finds idle: what reclaimed pods are not given here cannot be sold.
        if (given := seen.allocation) is not None:
            offered = Offered(
                min(offered.cpu_millis, max(0, given.reclaimed_cpu_millis - withheld.cpu_millis)),
                min(offered.memory_bytes, max(0, given.reclaimed_memory_bytes - withheld.memory_bytes)),
            )
        self._offer.report(offered, now_s)


def _found(sample: NodeSample | None, capacity: NodeCapacity | None, strategy: ColocationStrategy) -> BatchOffer | None:
    return None if sample is None or capacity is None else batch_offer(sample, capacity, strategy)
