"""The advisor at work: a sample in, an advice out at once; the same advice again while nothing new is known.

When samples stop, one cautious advice follows and then silence, so that qrm's lease runs out (DESIGN section 7 rule 1).
"""

from collections.abc import Mapping
from typing import Any

import structlog

from services.advisor.core.sizing import Round, decide
from services.advisor.core.view import View, has_no_rates, view_of
from services.advisor.settings import NAME, choose
from shared import telemetry
from shared.contracts.advice import PoolAdvice
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.cpuset import CpuSet
from shared.core.topology import Topology
from shared.ports import Clock
from shared.settings import merge
from shared.wire import Newest, Wire

log = structlog.get_logger()

AFTER_S = 0.05
"""How long after the moment at which a sample grows too old to look again: an age equal to the bound is still fresh."""


class AdvisorApp:
    """Sizes the pools of one machine."""

    def __init__(self, wire: Wire, clock: Clock, raw: Mapping[str, Any], topology: Topology) -> None:
        self._wire, self._clock, self._topology = wire, clock, topology
        self._static = dict(raw.get(NAME) or {})
        self._choice = choose(self._static)
        self._view: View | None = None
        self._received_at = 0.0
        self._based_on: tuple[str, ...] = ()
        self._round: Round | None = None
        self._advice: PoolAdvice | None = None

    async def run(self) -> None:
        """Work until cancelled: at once on a sample, else when the advice is due again or its input grows too old."""
        samples = await self._wire.newest(NodeSample)
        while True:
            sample = await samples.next(self._patience_s())
            if sample is not None and self._take(sample, samples):
                await self._advise()
            elif self._view is not None and self._view.fresh:
                await self._without_news(self._view, repeat=sample is None)

    async def _without_news(self, view: View, *, repeat: bool) -> None:
        if self._age_s > self._choice.settings.max_input_age_s:
            log.warning("input.stale", age_s=round(self._age_s, 3), based_on=self._based_on)
            self._view = view.blind()
            await self._advise()
        elif repeat:
            await self._say()

    def _patience_s(self) -> float:
        """How long to wait for a sample before there is something to do without one."""
        settings = self._choice.settings
        if self._view is None or not self._view.fresh:
            return settings.period_s
        return min(settings.period_s, max(0.0, settings.max_input_age_s - self._age_s) + AFTER_S)

    @property
    def _age_s(self) -> float:
        return self._clock.monotonic() - self._received_at

    def _take(self, sample: NodeSample, samples: Newest[NodeSample]) -> bool:
        """Make a sample the newest input; False where it cannot be judged yet."""
        online = CpuSet.parse(sample.node_reading.online_cpus) & self._topology.all
        bounds = self._choice.settings.bounds(len(online or self._topology.all), smt=self._topology.smt)
        view = view_of(sample, bounds)
        if has_no_rates(sample, view):
            log.info("sample.skipped", sample=sample.ref, why="first pass of a measuring life: no CPU use yet")
            return False
        if self._view is not None and self._view.bounds.disjoint != bounds.disjoint:
            self._round = None  # sizes are in another unit now: those of the last round limit nothing
        self._view = view
        self._received_at = self._clock.monotonic() - (samples.age_s or 0.0)
        self._based_on = (sample.ref,)
        return True

    async def _advise(self) -> None:
        """Decide on the newest view and say it."""
        if self._view is None:
            return
        started_at = self._clock.monotonic()
        choice, before = self._choice, self._round
        with telemetry.span("advisor.decide", {"policy": choice.policy.name, "fresh": self._view.fresh}):
            self._round = decide(
                self._view, started_at, choice.policy, choice.policy_settings, choice.settings.rules, before
            )
            if before is None or before.sizes.reclaim_cpus != self._round.sizes.reclaim_cpus:
                sizes = self._round.sizes
                log.info("advice.changed", share=sizes.share_cpus, reclaim=sizes.reclaim_cpus, based_on=self._based_on)
            await self._say()
        telemetry.STEP_SECONDS.labels(NAME).observe(self._clock.monotonic() - started_at)

    async def _say(self) -> None:
        """Publish the last decision."""
        if self._round is None:
            return
        self._advice = self._wire.stamp(
            PoolAdvice,
            based_on=self._based_on,
            mode=self._choice.policy_settings.mode,
            valid_for_s=self._choice.settings.valid_for_s,
            **self._round.fields(),
        )
        await self._wire.publish(self._advice)

    def health(self) -> ServiceHealth:
        """Well while usable samples come."""
        if self._view is None:
            return ServiceHealth(service=NAME, ok=False, why="no usable sample received yet")
        ok = self._view.fresh and self._age_s <= self._choice.settings.max_input_age_s
        why = "" if ok else f"the newest usable sample is {self._age_s:.1f} s old"
        return ServiceHealth(service=NAME, ok=ok, why=why, input_age_s=self._age_s)

    def state(self) -> Mapping[str, Any]:
        """The last advice, and what it rests on."""
        return {
            "policy": self._choice.policy.name,
            "settings": self._choice.settings.model_dump(mode="json"),
            "advice": None if self._advice is None else self._advice.model_dump(mode="json"),
            "input": list(self._based_on),
            "input_age_s": None if self._view is None else self._age_s,
            "fresh": self._view is not None and self._view.fresh,
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings, whole or not at all; they show in the next advice.

        Raises:
            BadConfig: a key, a policy or a value cannot be used.
        """
        self._choice = choose(merge(self._static, section))

    async def close(self) -> None:
        """End the subscription."""
        await self._wire.stop()
