"""`AdvisorApp` answers each sample with an advice at once, and repeats the last advice while no sample arrives.

When samples stop, it publishes one cautious advice and then nothing, so that qrm's lease expires
(docs/facts/safety-rules.md#rule-1-absent-is-not-zero). If a policy fails or is too slow, canonical replaces it for a
while, and the health says so.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from services.advisor.core.model.view import View
from services.advisor.core.observation.placement import NO_PLACES, PodPlace, places_in
from services.advisor.core.observation.profiles import profiled
from services.advisor.core.observation.sample_view import SeenPods, has_no_rates, view_of
from services.advisor.core.offer.cpu import CpuOffer
from services.advisor.core.offer.offering import OfferInputs, offering
from services.advisor.core.round.decide import Round, decide
from services.advisor.core.round.guard import SLOW, ConfiguredPolicy
from services.advisor.core.round.shape_choice import ShapeChoice, ShapeEvidence
from services.advisor.heard_profiles import HeardProfiles
from services.advisor.learned_past import LearnedPast
from services.advisor.ports import AdvisorPorts
from services.advisor.settings import CANONICAL, NAME, AdvisorSettings, choice_of, choose
from shared import telemetry
from shared.app import Context
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused
from shared.settings import merge
from shared.wire import Newest

log = structlog.get_logger()

AFTER_S = 0.05
"""Seconds added to the wait for the moment at which a sample is too old: at the bound itself it is still fresh."""


@dataclass(frozen=True, slots=True)
class _Input:
    """The newest usable sample, the view of it, and when it came (monotonic seconds)."""

    sample: NodeSample
    view: View
    received_at_s: float
    traceparent: str = ""

    @property
    def based_on(self) -> tuple[str, ...]:
        """Return the messages on which an advice is based."""
        return (self.sample.ref,)


@dataclass(frozen=True, slots=True)
class _PassedOver:
    """Why canonical decides for the chosen policy, and when that one is tried again (monotonic seconds)."""

    why: str
    retry_at_s: float


class AdvisorApp:
    """Sizes the pools of one machine."""

    def __init__(self, context: Context, ports: AdvisorPorts, settings: AdvisorSettings) -> None:
        self._wire, self._clock, self._topology = context.wire, context.clock, ports.topology
        self._waited_s = ports.waited_s
        self._static = dict(context.raw.get(NAME) or {})
        self._choice = choice_of(settings)
        self._input: _Input | None = None
        self._round: Round | None = None
        self._offer = CpuOffer()
        self._fields: Mapping[str, Any] = {}
        self._advice: PoolAdvice | None = None
        self._allocations: Newest[Allocation] | None = None
        self._skipped = ""
        self._passed_over: _PassedOver | None = None
        self._evidence = ShapeEvidence()
        self._past, self._seen = LearnedPast(ports.past), SeenPods()
        self._profiles = HeardProfiles(context.wire)

    async def run(self) -> None:
        """Run until cancelled: at once for a sample, otherwise when the advice must be repeated or its input becomes
        stale."""
        self._recall_past()
        samples = await self._wire.newest(NodeSample)
        self._allocations = await self._wire.newest(Allocation)
        while True:
            # Here, for a configuration may switch it on at any time.
            await self._profiles.listen(self._choice.settings.service_profiles)
            # Woken by itself only when the advice has to be repeated or its input has become too old.
            sample = await samples.next(self._wait_s())
            if sample is not None and self._accept(sample, samples):
                await self._advise()
                if self._past.is_due(self._clock.monotonic()):
                    self._keep_past()
            # Blind already: the one cautious advice is out, and qrm's lease has to run out now.
            elif self._input is not None and self._input.view.fresh:
                await self._without_news(self._input, repeat=sample is None)

    def _recall_past(self) -> None:
        self._past.recall(self._choice.policy, self._clock.monotonic(), self._clock.wall().timestamp())

    def _keep_past(self) -> None:
        self._past.save(self._choice.policy, self._clock.monotonic(), self._clock.wall().timestamp())

    async def _without_news(self, newest: _Input, *, repeat: bool) -> None:
        if (age_s := self._age_s(newest)) > self._choice.settings.max_input_age_s:
            log.warning("input.stale", age_s=round(age_s, 3), based_on=newest.based_on)
            # Once: a view that is blind is not fresh, and none of what follows comes again before a sample does.
            self._input = replace(newest, view=newest.view.blind())
            await self._advise()
        elif repeat:
            await self._publish()

    def _wait_s(self) -> float:
        """Return how long to wait for a sample before something must be done without one."""
        settings = self._choice.settings
        if self._input is None or not self._input.view.fresh:
            return settings.period_s
        return min(settings.period_s, max(0.0, settings.max_input_age_s - self._age_s(self._input)) + AFTER_S)

    def _age_s(self, newest: _Input) -> float:
        return self._clock.monotonic() - newest.received_at_s

    def _accept(self, sample: NodeSample, samples: Newest[NodeSample]) -> bool:
        """Make a sample the newest input; False where it cannot be judged yet."""
        # CPUs go online and offline, but the topology was read only once; an unknown CPU cannot be placed.
        online = CpuSet.parse(sample.node_reading.online_cpus) & self._topology.all
        self._evidence = self._evidence.with_idle_class(self._told_idle_class())
        cpus, smt = len(online or self._topology.all), self._topology.smt
        bounds = self._choice.bounds(cpus, smt=smt, evidence=self._evidence)
        view = view_of(sample, bounds, self._places(), self._seen)
        view = profiled(view, self._profiles.profiles(self._choice.settings.service_profiles))
        if has_no_rates(sample, view):
            self._skipped = "the newest one is the first pass of a measuring life: no CPU use yet"
            log.info("sample.skipped", sample=sample.ref, why=self._skipped)
            return False
        self._skipped = ""
        before = self._input.view.bounds if self._input else bounds
        if (before.disjoint, before.shares_cpus) != (bounds.disjoint, bounds.shares_cpus):
            # CPUs where pools are disjoint, milli-cores where they overlap: the last sizes cannot limit the next ones.
            self._round = None
            log.info("shape.changed", shape=self._shape.shape, why=self._shape.why)
        # From its arrival: a sample that had to wait for a long round is not as fresh as one that comes now.
        self._input = _Input(sample, view, self._clock.monotonic() - (samples.age_s or 0.0), samples.traceparent)
        return True

    @property
    def _shape(self) -> ShapeChoice:
        return self._choice.shape(self._evidence)

    def _told_idle_class(self) -> bool | None:
        newest = self._fresh_allocation()
        return None if newest is None else newest.idle_class

    def _places(self) -> Mapping[str, PodPlace]:
        """Where pods are; nothing where no allocation is fresh enough to say so."""
        newest = self._fresh_allocation()
        return NO_PLACES if newest is None else places_in(newest, self._topology.numas)

    def _fresh_allocation(self) -> Allocation | None:
        slot = self._allocations
        return slot.within(self._choice.settings.max_allocation_age_s) if slot else None

    async def _advise(self) -> None:
        """Decide on the newest view and publish the advice."""
        newest = self._input
        if newest is None:
            return
        started_s = self._clock.monotonic()
        before = self._round
        about: telemetry.Attributes = {
            "policy": self._choice.policy.name,
            "fresh": newest.view.fresh,
            "sample": newest.sample.ref,
        }
        with telemetry.span("advisor.decide", about, parent=newest.traceparent):
            try:
                self._round = self._decide(newest.view, started_s)
            except Refused as refusal:  # no policy could decide: silence, so that the last lease runs out
                log.error("advice.impossible", reason=refusal.reason, why=str(refusal))
                self._pass_over(str(refusal), refusal.reason, started_s)
                return
            if before is None or before.sizes.reclaim_cpus != self._round.sizes.reclaim_cpus:
                sizes = self._round.sizes
                log.info("advice.changed", share=sizes.share_cpus, reclaim=sizes.reclaim_cpus, based_on=newest.based_on)
            self._fields = self._offered(self._round, newest)
            await self._publish()
        telemetry.STEP_SECONDS.labels(NAME).observe(self._clock.monotonic() - started_s)

    def _decide(self, view: View, now_s: float) -> Round:
        """The next round: by the chosen policy, by canonical while that one is passed over.

        Raises:
            Refused: as `decide`.
        """
        choice, rules = self._choice, self._choice.rules
        chosen = ConfiguredPolicy(choice.policy, choice.policy_settings, self._past.states)
        if self._passed_over and now_s >= self._passed_over.retry_at_s:
            log.info("policy.retried", policy=chosen.policy.name)
            self._passed_over = None
        if self._passed_over and choice.fallback is not None:
            chosen = choice.fallback
            rules = replace(rules, instead=self._passed_over.why)
        # A policy cannot be stopped in the middle: its answer counts this time, and it is passed over the next.
        waited_before_s = self._waited_s()
        done = decide(view, now_s, chosen, rules, self._round)
        waited_s = self._waited_s() - waited_before_s
        self._past.learn(choice.policy, done)
        self._evidence = self._evidence.with_round(done, view, choice.policy)
        # Beside busy neighbours any policy has to wait for a CPU; to pass it over would take its forecast away then.
        took_ms, budget_ms = 1000 * (self._clock.monotonic() - now_s - waited_s), choice.settings.policy_budget_ms
        if done.failed:
            self._pass_over(done.failed, "policy_failed", now_s)
        elif took_ms > budget_ms and chosen.policy.name != CANONICAL:
            words = (
                f"policy {chosen.policy.name!r} took {took_ms:.0f} ms for a round, policy_budget_ms is {budget_ms:g}"
            )
            self._pass_over(words, SLOW, now_s)
        return done

    def _pass_over(self, why: str, reason: str, now_s: float) -> None:
        """Let canonical decide for a while."""
        self._passed_over = _PassedOver(why, now_s + self._choice.settings.policy_retry_s)
        telemetry.REFUSED.labels(NAME, "policy", reason).inc()
        log.warning("policy.passed_over", policy=self._choice.policy.name, reason=reason, why=why)

    async def _publish(self) -> None:
        """Publish the last decision. Only the first message asks to drop page cache, not its repetitions."""
        if self._round is None or self._input is None:
            return
        self._advice = self._wire.stamp(
            PoolAdvice,
            based_on=self._input.based_on,
            mode=self._choice.policy_settings.mode,
            valid_for_s=self._choice.settings.valid_for_s,
            **self._fields,
        )
        telemetry.SHARED_CPUS.set(self._advice.overlap)
        # A repetition is no new order: the cache would be dropped again for a shortage that may be over.
        self._fields = {**self._fields, "drop_cache": ()}
        await self._wire.publish(self._advice)

    def _offered(self, done: Round, newest: _Input) -> Mapping[str, Any]:
        """The fields of the advice with the offer that follows from the round."""
        allocation, settings = self._fresh_allocation(), self._choice.settings
        pool = None if allocation is None else allocation.pool(RECLAIM)
        applied = CpuSet.parse(pool.cpus) if pool else None
        inputs = OfferInputs(newest.sample, newest.view, applied, self._topology.numas)
        made = offering(done, inputs, settings.offer.rules, self._choice.rules, self._offer)
        self._offer = made.cpu
        return {**made.fields, "why": (*made.fields["why"], self._shape.reason)}

    def health(self) -> ServiceHealth:
        """Well while usable samples come and the chosen policy decides."""
        if self._input is None:
            words = f"no usable sample received yet{'; ' if self._skipped else ''}{self._skipped}"
            return ServiceHealth(service=NAME, ok=False, why=words)
        problems = [*self._stale(self._input), *self._choice.problems]
        if self._passed_over:
            retry_in_s = max(0.0, self._passed_over.retry_at_s - self._clock.monotonic())
            problems.append(f"{self._passed_over.why}; canonical decides, again from {retry_in_s:.0f} s on")
        # As with allocations that are too old: the settings hold, and the advisor stays well.
        unheard = self._profiles.stale(self._choice.settings.service_profiles, self._uids())
        why = "; ".join([*problems, *self._unplaced(), *([unheard] if unheard else [])])
        return ServiceHealth(service=NAME, ok=not problems, why=why, input_age_s=self._age_s(self._input))

    def _stale(self, newest: _Input) -> list[str]:
        age_s, bound_s = self._age_s(newest), self._choice.settings.max_input_age_s
        if newest.view.fresh and age_s <= bound_s:
            return []
        words = f"the newest usable sample is {age_s:.1f} s old, {bound_s:g} s is the bound"
        return [f"{words}; {self._skipped}" if self._skipped else words]

    def _uids(self) -> Collection[str]:
        return {container.uid for container in self._input.view.containers} if self._input else ()

    def _unplaced(self) -> list[str]:
        """A sentence where the newest allocation is too old: it costs precision, not safety; the advisor stays well."""
        age_s = self._allocations.age_s if self._allocations else None
        bound_s = self._choice.settings.max_allocation_age_s
        if age_s is None or age_s <= bound_s:
            return []
        return [
            f"the newest allocation is {age_s:.1f} s old, {bound_s:g} s is the bound: pods count where they ask to be"
        ]

    def state(self) -> Mapping[str, Any]:
        """The last advice, and what it rests on."""
        slot, newest = self._allocations, self._input
        return {
            "policy": self._choice.policy.name,
            "decides": None if self._round is None else self._round.policy,
            "shape": {"name": self._shape.shape, "why": self._shape.why},
            "problems": [*self._choice.problems, *([self._passed_over.why] if self._passed_over else [])],
            "settings": self._choice.settings.model_dump(mode="json"),
            "advice": None if self._advice is None else self._advice.model_dump(mode="json"),
            "input": [] if newest is None else list(newest.based_on),
            "input_age_s": None if newest is None else self._age_s(newest),
            "allocation_age_s": slot.age_s if slot else None,
            "service_profiles": self._profiles.state(self._choice.settings.service_profiles, self._uids()),
            "takes_targets": self._choice.policy.takes_targets,
            "fresh": newest is not None and newest.view.fresh,
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings, whole or not at all; they show in the next advice.

        Raises:
            BadConfig: a key, a policy or a value cannot be used.
        """
        before, self._choice = self._choice.policy, choose(merge(self._static, section))
        if self._choice.policy is not before:
            self._recall_past()
            self._evidence = replace(self._evidence, knows_tenants=False)
        # New settings may be what mends the policy, so it is tried at once.
        self._passed_over = None

    async def close(self) -> None:
        """End the subscription, with what was learned in its file."""
        self._keep_past()
        await self._wire.stop()
