"""Offers Koordinator's mid resources over time, and learns from every sample what prod pods use.

The past is learned while the offer is on or a NodeMetric reports what prod pods lend, and is kept across restarts of
the reporter. As with batch resources, an offer ends even if no message arrives any more.
"""

from dataclasses import asdict, replace
from typing import Any

from services.reporter.core.batch_resources import degraded
from services.reporter.core.field import Offered
from services.reporter.core.mid.amount import MidOffer, MidStrategy, mid_offer, sold_and_unused
from services.reporter.core.mid.peaks import UsageHistory, UsedAmounts
from services.reporter.core.mid.reclaimable import ProdReclaimable, prod_pods, prod_reclaimable, used_now
from services.reporter.core.mid.stored_past import past_of, past_text
from services.reporter.core.node_capacity import NodeCapacity
from services.reporter.offer_over_time import ColocationInput, OfferOverTime
from services.reporter.settings import ReporterSettings
from shared.contracts.sample import NodeSample
from shared.ports import Past

NOTHING = Offered(0, 0)
KEEP_S = 600.0
"""Seconds between two writes of the past."""


class MidNodeOffer:
    """Both mid resources as they are reported; nothing unless the settings say so."""

    def __init__(self, settings: ReporterSettings, past: Past | None = None) -> None:
        self._settings, self._past, self._kept_at_s = settings, past, 0.0
        self._offer = OfferOverTime(settings)
        self._history = UsageHistory()
        self._found: MidOffer | None = None
        self._reclaimable = ProdReclaimable()
        self._strategy = settings.mid.strategy
        self._withheld = NOTHING
        self._learnt: tuple[NodeSample, NodeCapacity | None] | None = None
        self.unread: tuple[str, ...] = ()
        """Declarations of the Node about mid resources that cannot be followed."""

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        self._settings = settings
        self._offer.reconfigure(settings)

    @property
    def withheld(self) -> Offered:
        """Return what mid pods bought and do not use: idle, but not for sale under another name."""
        return self._withheld if self._settings.mid.enabled else NOTHING

    def smoothed(self, seen: ColocationInput, now_s: float) -> Offered | None:
        """Return what is reported now; None if nothing is offered, which differs from an offer of 0."""
        mid, node = self._settings.mid, seen.override
        degrade_after_s = node.degrade_after_s or mid.degrade_after_s
        self.unread = node.unread_mid if mid.enabled else ()
        fresh = seen.sample_age_s is not None and seen.sample_age_s <= self._settings.max_sample_age_s
        if not (mid.enabled or self._settings.node_metric.enabled):
            self._learnt = None
        elif fresh and seen.sample is not None:
            self._learn(seen.sample, seen.capacity, now_s)
        if not mid.enabled or node.off or degraded(seen.sample_age_s, degrade_after_s):
            self._end()
        elif fresh and seen.sample is not None and (capacity := seen.capacity) is not None:
            self._follow(seen.sample, capacity, replace(mid.strategy, **node.mid), now_s)
        # Samples that come and say too little are no better than none.
        if self._offer.reported is not None and degraded(self._offer.unheard_s(now_s), degrade_after_s):
            self._end()
        return self._offer.reported

    def state(self) -> dict[str, Any] | None:
        """Return the reported offer and its terms, for `explain`; None if nothing is offered."""
        reported, found, strategy = self._offer.reported, self._found, self._strategy
        if reported is None or found is None:
            return None
        return {
            "cpu_millis": reported.cpu_millis,
            "memory_bytes": reported.memory_bytes,
            "mode": strategy.mode,
            "unallocated_percent": strategy.unallocated_percent,
            "known_pods": self._reclaimable.known_pods,
            "new_pods": self._reclaimable.new_pods,
            "cpu": {"amount": found.cpu_millis, **asdict(found.cpu)},
            "memory": {"amount": found.memory_bytes, **asdict(found.memory)},
        }

    def recall(self, now_s: float, wall_s: float) -> str:
        """Load what the previous run learned; return why that is nothing, or "" if all is well.

        Raises:
            Unavailable: it cannot be read.
        """
        self._kept_at_s = now_s
        text = None if self._past is None else self._past.read()
        if text is None:
            return ""
        self._history, why = past_of(text, now_s, wall_s)
        return why

    def save(self, now_s: float, wall_s: float, *, at_the_end: bool = False) -> None:
        """Write what was learned, if a write is due.

        Raises:
            Unavailable: it cannot be written.
        """
        due = at_the_end or now_s - self._kept_at_s >= KEEP_S
        learns = self._learnt is not None and self._history.models
        if self._past is None or not due or not learns:
            return
        # Also where it fails: the next try is as far away.
        self._kept_at_s = now_s
        self._past.write(past_text(self._history, wall_s))

    def lent(self) -> ProdReclaimable | None:
        """Return what prod pods lend according to their past; None if that is not learned, or the node's capacity is
        unknown."""
        sample, capacity = self._learnt or (None, None)
        return None if sample is None or capacity is None else self._lent(sample, capacity)

    def _learn(self, sample: NodeSample, capacity: NodeCapacity | None, now_s: float) -> None:
        self._learnt = sample, capacity
        self._withheld = sold_and_unused(sample)
        self._history.observe(used_now(sample), now_s)

    def _follow(self, sample: NodeSample, capacity: NodeCapacity, strategy: MidStrategy, now_s: float) -> None:
        lent = self._lent(sample, capacity)
        found = mid_offer(sample, capacity, strategy, lent)
        # One sample without a figure is no reason to take anything away: time does that.
        if found is None:
            return
        self._found, self._reclaimable, self._strategy = found, lent, strategy
        self._offer.report(Offered(found.cpu_millis, found.memory_bytes), now_s)

    def _lent(self, sample: NodeSample, capacity: NodeCapacity) -> ProdReclaimable:
        allocatable = UsedAmounts(
            max(0, capacity.cpu_millis - capacity.reserved_cpu_millis),
            max(0, capacity.memory_bytes - capacity.reserved_memory_bytes),
        )
        return prod_reclaimable(prod_pods(sample), self._history, allocatable, self._settings.mid.prediction)

    def _end(self) -> None:
        self._offer.end()
        self._found = None
