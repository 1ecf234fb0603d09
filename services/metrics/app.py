"""Run metrics: probes between passes, passes over the host, samples out.

The rates of a sample cover the time since the last pass (`window_s`): at most a period, or longer while the node rests
(`services.metrics.core.rest`). There is one exception. In an early pass, the use of the tenants' pool covers only the
time since the probe before the last one, so that a load that rose 0.2 s ago appears at its full height instead of as a
period's average. The probes do not read the pool's containers, so another pass follows one probe later, whose rates all
cover that short time. That second pass also reads all targets that moved, which the first one skipped to be quick.
Figures that are not read in every pass (`services.metrics.core.reads.gates`) cover the time between their own last two
readings; `figure_ages_s` says how old they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from pydantic import ValidationError

from services.metrics.core.applications import MeasuredApplication, PlacedApplications, application_readings, place
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import USAGE_COUNTER
from services.metrics.core.sample.summary import summarise
from services.metrics.core.wake_state import PassReport
from services.metrics.core.wakeup import KernelMemory, Observation, Trigger
from services.metrics.ports import Collected, MetricsPorts
from services.metrics.publisher import SamplePublisher
from services.metrics.settings import NAME, MetricsSettings
from services.metrics.waker import Waker
from shared import telemetry
from shared.app import Context
from shared.contracts.pod import Pod
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import SHARE
from shared.errors import BadConfig, SubletError
from shared.settings import check, merge

log = structlog.get_logger()

STALE_PERIODS = 3
MOST_NAMED = 5
_NODE = "node:"


@dataclass(frozen=True, slots=True)
class PodList:
    """The last list of pods; without a generation they are listed again."""

    pods: Sequence[Pod] = ()
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class PublishedPass:
    """The last pass that has succeeded."""

    sample: NodeSample | None = None
    results: LastPass = field(default_factory=LastPass)
    at_s: float = 0.0


class MetricsApp:
    """Publishes a NodeSample every period, and at once when something changes that other services must know."""

    def __init__(self, context: Context, ports: MetricsPorts, settings: MetricsSettings) -> None:
        """`settings` is the checked static section; a reconfiguration is merged on top of it."""
        self._context, self._ports, self._settings = context, ports, settings
        self._waker = Waker(ports, context.clock, settings)
        self._publisher = SamplePublisher(context.wire)
        self._listed = PodList()
        self._placed: tuple[Sequence[Pod], Sequence[MeasuredApplication], PlacedApplications] | None = None
        self._last = PublishedPass()
        self._failure = ""
        """Why the last pass failed; "" if it did not."""
        self._source_failures: Mapping[str, str] = {}

    async def run(self) -> None:
        """Sample until cancelled."""
        await self._pass("start")
        while True:
            await self._pass(await self._waker.next_trigger())

    def health(self) -> ServiceHealth:
        """Report well while passes succeed, samples reach the bus, no source fails, and no figure of the node is
        missing.

        A missing figure of a container is no fault of metrics: its cgroup was recreated, or its counter jumped once.
        """
        age_s = None if self._last.sample is None else self._context.clock.monotonic() - self._last.at_s
        why = self._failure or self._publisher.failure or self._staleness(age_s) or self._missing()
        return ServiceHealth(service=NAME, ok=not why, why=why, input_age_s=age_s)

    def _staleness(self, age_s: float | None) -> str:
        if age_s is None:
            return "no sample yet"
        period_s = self._waker.longest_period_s
        return (
            f"last sample is {age_s:.1f} s old, want one every {period_s} s" if age_s > STALE_PERIODS * period_s else ""
        )

    def _missing(self) -> str:
        if self._source_failures:
            return "; ".join(f"source {name}: {what}" for name, what in sorted(self._source_failures.items()))
        rejected = sorted(self._last.results.rejected.items())
        return "; ".join(f"{name}: {what}" for name, what in rejected if name.startswith(_NODE))

    def state(self) -> Mapping[str, Any]:
        """The last sample, and which figures are missing in it though they were read."""
        last = self._last
        sample = None if last.sample is None else last.sample.model_dump(mode="json", exclude_none=True)
        return {"sample": sample, "missing": dict(last.results.rejected)}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new periods and bounds; they hold from the next probe on.

        Raises:
            BadConfig: not valid, or it would switch what is built at the start.
        """
        static = self._context.raw.get(NAME) or {}
        wanted = check(MetricsSettings, merge(static, section), where=NAME)
        if wanted.perf != self._settings.perf:
            raise BadConfig(f"{NAME}.perf holds from the agent's start: set it in its settings, and start it anew")
        self._settings = wanted
        self._waker.configure(self._settings)

    async def close(self) -> None:
        """Disarm the kernel's triggers, close files, take the gauges away."""
        self._ports.show.close()
        self._ports.alarm.close()
        self._ports.tripwire.close()
        self._ports.collector.close()

    async def _pass(self, trigger: Trigger) -> None:
        """Read everything, publish it, remember what was reported. A pass that fails publishes nothing."""
        # Before anything is read: a pass that fails has had its turn.
        now_s = self._context.clock.monotonic()
        self._waker.pass_begins(now_s)
        collector = self._ports.collector
        with telemetry.span("metrics.pass", {"trigger": trigger}):
            try:
                pods = self._list_pods()
                applications = self._place_applications(pods)
                collected = collector.collect(pods, applications.targets, whole=self._waker.whole_pass)
                fields, results = summarise(self._base(trigger), collected.readings, collector.offered, pods, now_s)
                fields["host_applications"] = application_readings(
                    self._settings.host_applications, applications, results.results, collected.unread
                )
                fields["counters_unmeasured"] = collected.uncounted
                sample = self._context.wire.stamp(NodeSample, trigger=trigger, **fields)
            # No part of a sample is better than a wrong one: readers see its age and act on that.
            except (SubletError, OSError, ValidationError) as error:
                self._fail(str(error))
                return
            await self._publisher.publish(sample)
        self._log_missing(results.rejected)
        self._last = PublishedPass(sample, results, now_s)
        self._ports.show.show(sample, missing=len(results.rejected), failing=len(collected.failures))
        self._succeed(collected)
        self._waker.pass_ended(self._report(sample, trigger, now_s))
        telemetry.STEP_SECONDS.labels(NAME).observe(self._context.clock.monotonic() - now_s)

    def _list_pods(self) -> Sequence[Pod]:
        """The pods, read again only when they may have changed."""
        source = self._ports.pods
        generation = source.generation()
        if generation != self._listed.generation:
            self._listed = PodList(self._listed.pods)  # what follows may fail: then it is asked again
            self._waker.pods_listed(generation)
            self._listed = PodList(tuple(source.pods()), generation)
        return self._listed.pods

    def _place_applications(self, pods: Sequence[Pod]) -> PlacedApplications:
        """As in the last pass, where neither pods nor settings have changed."""
        wanted = self._settings.host_applications
        if self._placed is None or self._placed[0] is not pods or self._placed[1] is not wanted:
            placed = place(wanted, self._ports.layout, pods)
            # The same targets where nothing has moved: their files stay open.
            if self._placed is not None and self._placed[2].targets == placed.targets:
                placed = replace(placed, targets=self._placed[2].targets)
            self._placed = (pods, wanted, placed)
        return self._placed[2]

    def _base(self, trigger: Trigger) -> LastPass:
        """Return the base of this pass's rates; the module docstring explains it."""
        before = self._waker.tenant_usage_before
        if trigger == "period" or before is None:
            return self._last.results
        return self._last.results.based_on(self._ports.tenants, USAGE_COUNTER, before)

    def _report(self, sample: NodeSample, trigger: Trigger, now_s: float) -> PassReport:
        """Return what the next probes are compared with."""
        node, tenants = sample.node_reading, sample.pool(SHARE)
        usage = tenants.cpu_usage_cores if tenants else None
        return PassReport(
            trigger,
            now_s,
            Observation(usage, node.memory_free_bytes, self._listed.generation),
            KernelMemory(node.memory_total_bytes, node.watermark_scale_factor),
            node.cpu_usage_cores,
        )

    def _log_missing(self, rejected: Mapping[str, str]) -> None:
        """Name figures that are left out because their counters cannot be believed, when they begin to be."""
        begun = {name: why for name, why in rejected.items() if name not in self._last.results.rejected}
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
