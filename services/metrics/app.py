"""Run metrics: probes between passes, passes over the host, samples out.

Which time a sample's rates cover: since the last pass (`window_s`), a period at most. One exception: in a pass that was
made early, the usage of the tenants' pool covers only the time since the probe before the last one, so that a load that
rose 0.2 s ago shows at its height and not as a period's average. Their containers are not probed; an early pass is
therefore followed by another one probe later, whose rates all cover that short time. What is not read in every pass
(`services.metrics.core.reads.gates`) covers the time between its own last two readings; `figure_ages_s` says how old
it is.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from pydantic import ValidationError

from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import USAGE_COUNTER
from services.metrics.core.figures.values import Point
from services.metrics.core.sample.summary import summarise
from services.metrics.core.wakeup import (
    KernelMemory,
    LastReported,
    Observation,
    PressureGate,
    Trigger,
    TripwireReading,
    WakeBounds,
    observation,
    reported,
    why_now,
)
from services.metrics.ports import Collected, MetricsPorts
from services.metrics.publisher import SamplePublisher
from services.metrics.settings import NAME, MetricsSettings
from shared import telemetry
from shared.app import Context
from shared.contracts.pod import Pod
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import SHARE
from shared.errors import SubletError, Unavailable
from shared.settings import check, merge

log = structlog.get_logger()

STALE_PERIODS = 3
MOST_NAMED = 5
_NODE = "node:"


class MetricsApp:
    """Publishes a NodeSample every period, and at once when something has changed that others must know."""

    def __init__(self, context: Context, ports: MetricsPorts, settings: MetricsSettings) -> None:
        """`settings` is the checked static section; what a reconfiguration says goes on top of it."""
        self._wire, self._clock = context.wire, context.clock
        self._pod_source, self._collector, self._tripwire = ports.pods, ports.collector, ports.tripwire
        self._alarm, self._show, self._tenants = ports.alarm, ports.show, ports.tenants
        self._static = dict(context.raw.get(NAME) or {})
        self._settings = settings
        self._last_pass = LastPass()
        self._sample: NodeSample | None = None
        self._sampled_at = self._tried_at = self._clock.monotonic()
        self._failure = ""
        self._publisher = SamplePublisher(self._wire)
        self._source_failures: Mapping[str, str] = {}
        self._pods: Sequence[Pod] = ()
        self._listed_generation: int | None = None
        self._reported: LastReported | None = None
        self._probe = self._probe_before = TripwireReading(self._clock.monotonic(), None, None, None)
        self._follow_up: Trigger | None = "start"
        self._gate = PressureGate(self._settings.min_gap_s)
        self._news: asyncio.Future[Trigger]
        self._timer: asyncio.TimerHandle
        self._pressure_waits = False

    async def run(self) -> None:
        """Sample until cancelled."""
        await self._pass("start")
        while True:
            await self._pass(await self._next_trigger())

    def health(self) -> ServiceHealth:
        """Well while passes succeed, samples reach the bus, no source fails, and no figure of the node is missing.

        A container's missing figure is not our illness: its cgroup was made anew, or its counter jumped once.
        """
        age_s = None if self._sample is None else self._clock.monotonic() - self._sampled_at
        why = self._failure or self._publisher.failure
        if not why and age_s is None:
            why = "no sample yet"
        elif not why and age_s is not None and age_s > STALE_PERIODS * self._settings.period_s:
            why = f"last sample is {age_s:.1f} s old, want one every {self._settings.period_s} s"
        elif not why and self._source_failures:
            why = "; ".join(f"source {name}: {what}" for name, what in sorted(self._source_failures.items()))
        elif not why:
            why = "; ".join(
                f"{name}: {what}" for name, what in sorted(self._last_pass.rejected.items()) if name.startswith(_NODE)
            )
        return ServiceHealth(service=NAME, ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """The last sample, and which figures are missing in it though they were read."""
        sample = None if self._sample is None else self._sample.model_dump(mode="json", exclude_none=True)
        return {"sample": sample, "missing": dict(self._last_pass.rejected)}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new periods and bounds; they hold from the next probe on."""
        self._settings = check(MetricsSettings, merge(self._static, section), where=NAME)

    async def close(self) -> None:
        """Disarm the kernel's triggers, close files, take the gauges away."""
        self._show.close()
        self._alarm.close()
        self._tripwire.close()
        self._collector.close()

    @property
    def _bounds(self) -> WakeBounds:
        settings = self._settings
        return WakeBounds(settings.tenant_step_cores, settings.memory_watch_bytes, peak_hold_s=settings.period_s)

    async def _next_trigger(self) -> Trigger:
        """Why the next pass is made. The timer itself probes: to wake this task for it costs as much as the probe."""
        self._news = asyncio.get_running_loop().create_future()
        # Pressure that came during the pass is looked at now: its event is taken, and the kernel will not repeat it.
        self._set_timer(0.0 if self._pressure_waits else self._settings.probe_s)
        try:
            return await self._news
        finally:
            self._timer.cancel()

    def _set_timer(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        # Pressure or a timer may come after the pass was decided, and before the task that waits for it is woken.
        if self._news.done():
            return
        try:
            trigger = self._due()
        except Exception as error:  # noqa: BLE001 - the task that waits dies of it, and the process with it
            self._news.set_exception(error)
            return
        if trigger is None:
            self._set_timer(self._settings.probe_s)
        else:
            self._news.set_result(trigger)

    def _on_pressure(self) -> None:
        self._pressure_waits = True
        self._timer.cancel()
        self._on_timer()

    def _due(self) -> Trigger | None:
        """Why a pass is due now, if it is."""
        now_s = self._clock.monotonic()
        half_probe_s = self._settings.probe_s / 2  # a timer's lateness must not skip a turn
        answers_pressure = self._pressure_waits and self._gate.allows(now_s)
        # Woken by pressure right after a probe: a rate over so short a time would be mere noise.
        if now_s - self._probe.at_s < half_probe_s:
            return "psi" if answers_pressure else None
        self._probe_before, self._probe = self._probe, self._read_probe(now_s)
        # Before anything else: this second sample was promised to whoever confirms the first.
        if self._follow_up is not None:
            trigger, self._follow_up = self._follow_up, None
            return trigger
        if self._reported is not None:
            # An early pass is followed by another one probe later: its containers' rates then cover
            # the short time as well.
            self._follow_up = why_now(self._reported, observation(self._probe_before, self._probe), self._bounds)
            if self._follow_up is not None:
                return self._follow_up
        if answers_pressure:
            return "psi"
        # From the last try, not the last success: a host that cannot be read is not asked without pause.
        return "period" if now_s - self._tried_at >= self._settings.period_s - half_probe_s else None

    def _read_probe(self, now_s: float) -> TripwireReading:
        usage_ns, free_bytes = self._tripwire.probe()
        generation = None
        with contextlib.suppress(Unavailable):  # the next pass asks again and says so
            generation = self._pod_source.generation()
        return TripwireReading(now_s, usage_ns, free_bytes, generation)

    async def _pass(self, trigger: Trigger) -> None:
        """Read everything, publish it, remember what was reported. A pass that fails publishes nothing."""
        # Before anything is read: a pass that fails has had its turn.
        now_s = self._tried_at = self._clock.monotonic()
        self._pressure_waits = False
        with telemetry.span("metrics.pass", {"trigger": trigger}):
            try:
                pods = self._list_pods()
                collected = self._collector.collect(pods)
                fields, this_pass = summarise(
                    self._base(trigger), collected.readings, self._collector.offered, pods, now_s
                )
                sample = self._wire.stamp(NodeSample, trigger=trigger, **fields)
            # No part of a sample is better than a wrong one: readers see its age and act on that.
            except (SubletError, OSError, ValidationError) as error:
                self._fail(str(error))
                return
            await self._publisher.publish(sample)
        self._log_missing(this_pass.rejected)
        self._last_pass, self._sample, self._sampled_at = this_pass, sample, now_s
        self._show.show(sample, missing=len(this_pass.rejected), failing=len(collected.failures))
        self._succeed(collected)
        self._remember(sample, trigger, now_s)
        # After each pass: cgroups of new pods have pressure files of their own.
        self._alarm.arm(self._on_pressure)
        telemetry.STEP_SECONDS.labels(NAME).observe(self._clock.monotonic() - now_s)

    def _list_pods(self) -> Sequence[Pod]:
        """The pods, read again only when they may have changed."""
        generation = self._pod_source.generation()
        if generation != self._listed_generation:
            self._listed_generation = None  # what follows may fail: then it is asked again
            if self._reported is not None:  # and this change has had its early pass
                self._reported = replace(self._reported, seen=replace(self._reported.seen, pods_generation=generation))
            self._pods = tuple(self._pod_source.pods())
            self._listed_generation = generation
        return self._pods

    def _base(self, trigger: Trigger) -> LastPass:
        """What the rates of this pass are based on: see the head of this module."""
        # The probe before the last one: between these two lies what made the pass early.
        probe = self._probe_before
        if trigger == "period" or probe.tenant_usage_ns is None:
            return self._last_pass
        return self._last_pass.based_on(self._tenants, USAGE_COUNTER, Point(probe.tenant_usage_ns, probe.at_s))

    def _remember(self, sample: NodeSample, trigger: Trigger, now_s: float) -> None:
        node, tenants, before = sample.node_reading, sample.pool(SHARE), self._reported
        seen = Observation(
            tenants.cpu_usage_cores if tenants else None, node.memory_free_bytes, self._listed_generation
        )
        # Only these passes are paced: steady pressure without news is asked ever less often.
        if trigger == "psi":
            self._gate = self._gate.after(
                now_s,
                news=before is not None and why_now(before, seen, self._bounds) is not None,
                min_gap_s=self._settings.min_gap_s,
                max_gap_s=self._settings.period_s,
            )
        memory = KernelMemory(node.memory_total_bytes, node.watermark_scale_factor)
        self._reported = reported(before, seen, memory, now_s, self._bounds)
        if before is not None and before.watch_armed and not self._reported.watch_armed:
            self._follow_up = "memory"  # whatever brought it to light: who acts on it needs a second sample

    def _log_missing(self, rejected: Mapping[str, str]) -> None:
        """Name figures that are left out because their counters cannot be believed, when they begin to be."""
        begun = {name: why for name, why in rejected.items() if name not in self._last_pass.rejected}
        if begun:
            log.warning("figures.missing", count=len(rejected), begun=dict(list(begun.items())[:MOST_NAMED]))

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
