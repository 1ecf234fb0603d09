"""The metrics service at work: probes between passes, passes over the host, samples out.

Which time a sample's rates cover: since the last pass (`window_s`), a period at most. One exception: in a pass that was
made early, the usage of the tenants' pool covers only the time since the probe before the last one, so that a load that
rose 0.2 s ago shows at its height and not as a period's average. Their containers are not probed; an early pass is
therefore followed by another one probe later, whose rates all cover that short time.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from pydantic import ValidationError

from services.metrics.core.figures import TENANTS, USAGE_COUNTER, Point
from services.metrics.core.summary import Memory, summarise
from services.metrics.core.wake import Bounds, PressureGate, Probe, Seen, Told, Trigger, seen_by, tell, why_now
from services.metrics.ports import Alarm, Collect, Collected, Tripwire
from services.metrics.settings import MetricsSettings
from shared import telemetry
from shared.contracts.pod import Pod
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.layout import SHARE
from shared.errors import SubletError, Unavailable
from shared.ports import Clock, PodSource
from shared.settings import check, merge, section
from shared.wire import Wire

log = structlog.get_logger()

NAME = "metrics"
STALE_PERIODS = 3


class MetricsApp:
    """Publishes a NodeSample every period, and at once when something has changed that others must know."""

    def __init__(
        self,
        wire: Wire,
        clock: Clock,
        raw: Mapping[str, Any],
        *,
        pods: PodSource,
        collector: Collect,
        tripwire: Tripwire,
        alarm: Alarm,
    ) -> None:
        self._wire, self._clock = wire, clock
        self._pod_source, self._collector, self._tripwire, self._alarm = pods, collector, tripwire, alarm
        self._static = dict(raw.get(NAME) or {})
        self._settings = section(MetricsSettings, raw, NAME)
        self._memory = Memory()
        self._sample: NodeSample | None = None
        self._sampled_at = self._tried_at = clock.monotonic()
        self._failure = ""
        self._source_failures: Mapping[str, str] = {}
        self._pods: Sequence[Pod] = ()
        self._listed_generation: int | None = None
        self._told: Told | None = None
        self._probe = self._probe_before = Probe(clock.monotonic(), None, None, None)
        self._follow_up: Trigger | None = "start"
        self._gate = PressureGate(self._settings.min_gap_s)
        self._wake = asyncio.Event()
        self._pressure_waits = False

    async def run(self) -> None:
        """Sample until cancelled."""
        await self._pass("start")
        while True:
            await self._rest()
            trigger = self._due()
            if trigger is not None:
                await self._pass(trigger)

    def health(self) -> ServiceHealth:
        """Well while passes succeed and no source fails."""
        age_s = None if self._sample is None else self._clock.monotonic() - self._sampled_at
        why = self._failure
        if not why and age_s is None:
            why = "no sample yet"
        elif not why and age_s is not None and age_s > STALE_PERIODS * self._settings.period_s:
            why = f"last sample is {age_s:.1f} s old, want one every {self._settings.period_s} s"
        elif not why and self._source_failures:
            why = "; ".join(f"source {name}: {what}" for name, what in sorted(self._source_failures.items()))
        return ServiceHealth(service=NAME, ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """The last sample."""
        return {"sample": None if self._sample is None else self._sample.model_dump(mode="json", exclude_none=True)}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new periods and bounds; they hold from the next probe on."""
        self._settings = check(MetricsSettings, merge(self._static, section), where=NAME)

    async def close(self) -> None:
        """Disarm the kernel's triggers."""
        self._alarm.close()

    @property
    def _bounds(self) -> Bounds:
        settings = self._settings
        return Bounds(settings.tenant_step_cores, settings.memory_watch_bytes, peak_hold_s=settings.period_s)

    async def _rest(self) -> None:
        """Until the next probe or the kernel's alarm. A bare timer: a timeout would cost as much as the probe."""
        timer = asyncio.get_running_loop().call_later(self._settings.probe_s, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
        self._wake.clear()

    def _on_pressure(self) -> None:
        self._pressure_waits = True
        self._wake.set()

    def _due(self) -> Trigger | None:
        """Why a pass is due now, if it is."""
        now_s = self._clock.monotonic()
        half_probe_s = self._settings.probe_s / 2  # a timer's lateness must not skip a turn
        answers_pressure = self._pressure_waits and self._gate.allows(now_s)
        if now_s - self._probe.at_s < half_probe_s:
            return "psi" if answers_pressure else None
        self._probe_before, self._probe = self._probe, self._look(now_s)
        if self._follow_up is not None:
            trigger, self._follow_up = self._follow_up, None
            return trigger
        if self._told is not None:
            self._follow_up = why_now(self._told, seen_by(self._probe_before, self._probe), self._bounds)
            if self._follow_up is not None:
                return self._follow_up
        if answers_pressure:
            return "psi"
        return "period" if now_s - self._tried_at >= self._settings.period_s - half_probe_s else None

    def _look(self, now_s: float) -> Probe:
        usage_ns, free_bytes = self._tripwire.look()
        generation = None
        with contextlib.suppress(Unavailable):  # the next pass asks again and says so
            generation = self._pod_source.generation()
        return Probe(now_s, usage_ns, free_bytes, generation)

    async def _pass(self, trigger: Trigger) -> None:
        """Read everything, publish it, remember what was told. A pass that fails publishes nothing."""
        now_s = self._tried_at = self._clock.monotonic()
        self._pressure_waits = False
        with telemetry.span("metrics.pass", {"trigger": trigger}):
            try:
                pods = self._list_pods()
                collected = self._collector.collect(pods)
                fields, memory = summarise(
                    self._base(trigger), collected.readings, self._collector.offered, pods, now_s
                )
                sample = self._wire.stamp(NodeSample, trigger=trigger, **fields)
            except (SubletError, OSError, ValidationError) as error:
                self._fail(str(error))
                return
            await self._wire.publish(sample)
        self._memory, self._sample, self._sampled_at = memory, sample, now_s
        self._succeed(collected)
        self._tell(sample, trigger, now_s)
        self._alarm.arm(self._on_pressure)
        telemetry.STEP_SECONDS.labels(NAME).observe(self._clock.monotonic() - now_s)

    def _list_pods(self) -> Sequence[Pod]:
        """The pods, read again only when they may have changed."""
        generation = self._pod_source.generation()
        if generation != self._listed_generation:
            self._listed_generation = None  # what follows may fail: then it is asked again
            if self._told is not None:  # and this change has had its early pass
                self._told = replace(self._told, seen=replace(self._told.seen, pods_generation=generation))
            self._pods = tuple(self._pod_source.pods())
            self._listed_generation = generation
        return self._pods

    def _base(self, trigger: Trigger) -> Memory:
        """What the rates of this pass are based on: see the head of this module."""
        probe = self._probe_before
        if trigger == "period" or probe.tenant_usage_ns is None:
            return self._memory
        return self._memory.based_on(TENANTS, USAGE_COUNTER, Point(probe.tenant_usage_ns, probe.at_s))

    def _tell(self, sample: NodeSample, trigger: Trigger, now_s: float) -> None:
        node, tenants, before = sample.node_reading, sample.pool(SHARE), self._told
        seen = Seen(tenants.cpu_usage_cores if tenants else None, node.memory_free_bytes, self._listed_generation)
        if trigger == "psi":
            self._gate = self._gate.after(
                now_s,
                news=before is not None and why_now(before, seen, self._bounds) is not None,
                min_gap_s=self._settings.min_gap_s,
                max_gap_s=self._settings.period_s,
            )
        self._told = tell(before, seen, node.memory_total_bytes, node.watermark_scale_factor, now_s, self._bounds)
        if before is not None and before.watch_armed and not self._told.watch_armed:
            self._follow_up = "memory"  # whatever brought it to light: who acts on it needs a second sample

    def _fail(self, why: str) -> None:
        if why != self._failure:
            log.error("sample.failed", why=why)
        self._failure = why

    def _succeed(self, collected: Collected) -> None:
        if self._failure:
            log.info("sample.recovered", after=self._failure)
        self._failure = ""
        if collected.failures.keys() != self._source_failures.keys():
            log.warning("sources.changed", failing=dict(collected.failures))
        self._source_failures = collected.failures
