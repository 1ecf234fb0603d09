"""Tell the cluster what this node offers and uses, and the series of its pods: nothing unless the settings say so."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from services.reporter.core.cluster import figures, offer
from services.reporter.core.cluster.offer import OfferNow, cannot_wait, offer_now
from services.reporter.core.field import FieldView, Offered
from services.reporter.core.node_metric.collect_policy import CollectPolicy
from services.reporter.core.node_metric.usage_windows import UsageWindows
from services.reporter.settings import ReporterSettings
from shared.contracts.cluster.figures import FIGURES_PERIOD_S, MAX_FIGURES_BYTES, PodFigures
from shared.contracts.cluster.offer import MAX_OFFER_BYTES, OFFER_PERIOD_S, NodeOffer, PodUses
from shared.contracts.envelope import Message
from shared.contracts.sample import NodeSample
from shared.core.node_mode import NodeSwitch
from shared.wire import Newest, Wire

log = structlog.get_logger()

Fields = dict[str, Any]
Shorter = Callable[[Fields], Fields | None]

WINDOW_S = 60
"""Over which a pod's use is averaged: what was placed here since then does not show yet."""
KEPT = CollectPolicy(aggregate_s=WINDOW_S)
USES_S = 5.0
"""What changes slowly is made anew so often at most, also where the offer falls with every sample: means of a minute,
and who is bound to which NUMA node."""
MIN_RISE = Offered(300, 300 << 20)
"""Smaller rises of an offer wait for the next message: as those of the node's object do."""


class ClusterReport:
    """Keeps uses while offers are wanted, and says both messages in their time."""

    def __init__(
        self, wire: Wire, settings: ReporterSettings, switch: NodeSwitch, withdrawn: Callable[[], bool]
    ) -> None:
        """`withdrawn` says whether central has taken the node's resources from sale."""
        self._wire, self._clock, self._switch, self._withdrawn = wire, wire.clock, switch, withdrawn
        self._wanted = asyncio.Event()
        self._windows: UsageWindows | None = None
        self._uses_made: tuple[Fields, float] | None = None
        self._view: FieldView | None = None
        self._said: OfferNow | None = None
        self._said_s = self._figured_s = float("-inf")
        self._counts = {"offers": 0, "figures": 0}
        self.reconfigure(settings)

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        self._settings, self._ours = settings, settings.cluster
        if self._ours.offer or self._ours.figures:
            self._wanted.set()
        else:
            self._wanted.clear()
        if not self._ours.offer:
            self._windows = self._said = self._uses_made = None
        if not self._ours.figures:
            self._figured_s = float("-inf")

    async def say_offer(self, view: FieldView, sample_age_s: float | None) -> None:
        """Say what is offered, if it cannot wait or is due."""
        self._view = view
        # While the bus is away nothing is published, so nothing is built.
        if not self._ours.offer or not self._wire.bus.connected:
            return
        now_s, now = self._clock.monotonic(), offer_now(view, self._switch.mode, withdrawn=self._withdrawn())
        due = now_s - self._said_s >= OFFER_PERIOD_S - self._settings.tick_s / 2
        if not due and not cannot_wait(self._said, now, MIN_RISE):
            return
        fields = {**now.message_fields(), **self._uses_of(view, sample_age_s, now_s)}
        fields["numas"] = offer.with_shares(fields["numas"], now, view)
        if now.reclaimed is not None and view.allocation is not None:
            fields["topology_policy"] = offer.BINDING
        # Only a sent message counts as published; otherwise a fall would be lost with the bus.
        if await self._say(self._offer, fields, MAX_OFFER_BYTES, offer.shorter):
            self._said, self._said_s = now, now_s
            self._counts["offers"] += 1

    async def run(self) -> None:
        """Follow the samples until cancelled; nothing is read or kept while nothing is wanted."""
        samples = await self._wire.newest(NodeSample)
        while True:
            if not self._wanted.is_set():
                await self._wanted.wait()
                await samples.next(timeout_s=0)  # what came meanwhile may be old
            sample = await samples.next(self._settings.tick_s)
            if sample is not None and self._ours.offer:
                self._keep(sample)
            if (
                self._ours.figures
                and self._wire.bus.connected
                and self._clock.monotonic() - self._figured_s >= FIGURES_PERIOD_S
            ):
                await self._say_figures(samples)

    def state(self) -> Mapping[str, Any]:
        """How many of each were said in this life."""
        return dict(self._counts)

    def _keep(self, sample: NodeSample) -> None:
        if self._windows is None:
            self._windows = UsageWindows(KEPT)
        self._windows.add(sample, self._clock.monotonic())

    def _uses_of(self, view: FieldView, sample_age_s: float | None, now_s: float) -> dict[str, Any]:
        """Uses and NUMA nodes as fields of the message. No uses of an old sample: they do not keep."""
        if self._windows is None or view.sample is None or not view.sample_fresh:
            self._uses_made = None
            return {"numas": offer.numas(view), "pods": PodUses(), "pods_left_out": 0}
        if self._uses_made is None or now_s - self._uses_made[1] >= USES_S:
            pods = offer.pod_uses(self._windows, WINDOW_S, now_s)
            left_out = view.sample.pods_left_out + max(0, len(self._windows.pods) - len(pods.uids))
            uses = offer.uses(self._windows, WINDOW_S, KEPT.windows_s, now_s)
            # As old as the sample was then; the time since is added below.
            uses |= {"usage_age_s": sample_age_s, "numas": offer.numas(view), "pods": pods, "pods_left_out": left_out}
            self._uses_made = uses, now_s
        uses, made_s = self._uses_made
        return {**uses, "usage_age_s": (uses["usage_age_s"] or 0.0) + now_s - made_s}

    async def _say_figures(self, samples: Newest[NodeSample]) -> None:
        # Not from a stale sample, because readers would take the figures for new.
        sample, view = samples.within(self._settings.max_sample_age_s), self._view
        if sample is None:
            return
        offered = None if view is None else offer_now(view, self._switch.mode, withdrawn=self._withdrawn()).reclaimed
        allocation = None if view is None else view.allocation
        fields = figures.figure_fields(sample, allocation, offered, self._ours.labels)
        fields["period_s"] = FIGURES_PERIOD_S
        if await self._say(self._figures, fields, MAX_FIGURES_BYTES, figures.shorter):
            self._figured_s = self._clock.monotonic()
            self._counts["figures"] += 1

    def _offer(self, fields: Fields) -> NodeOffer:
        return self._wire.stamp(NodeOffer, **fields)

    def _figures(self, fields: Fields) -> PodFigures:
        return self._wire.stamp(PodFigures, **fields)

    async def _say(self, make: Callable[[Fields], Message], fields: Fields, most_bytes: int, shorter: Shorter) -> bool:
        """Publish a message that is as long as it may be; False: the bus is away."""
        message = make(fields)
        while len(payload := message.encode()) > most_bytes and (less := shorter(fields)) is not None:
            fields = less
            message = make(fields)
        return await self._wire.publish(message, payload=payload)
