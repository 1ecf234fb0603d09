"""Run the reporter: newest allocation, sample and health in, the node's object and its readiness out."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from services.reporter.batch_node_offer import BatchNodeOffer
from services.reporter.cluster.cpu_report import CpuReport
from services.reporter.cluster.report import ClusterReport
from services.reporter.core.field import FieldView, Fragment, Offered
from services.reporter.core.health import facts, fold_health
from services.reporter.core.node_object import JudgedView, cnr, fragments, must_write
from services.reporter.core.overcommit.report import OvercommitReport
from services.reporter.core.resource_status import statuses_to_write
from services.reporter.mid_node_offer import MidNodeOffer
from services.reporter.offer_over_time import ColocationInput
from services.reporter.ports import ReporterPorts
from services.reporter.reclaimed_node_offer import ReclaimedNodeOffer
from services.reporter.registry import configured_fields
from services.reporter.reports.kubelet_binding import KubeletBindingReport
from services.reporter.reports.node_metric import NodeMetricReport
from services.reporter.reports.resource_status import ResourceStatusReport
from services.reporter.settings import NAME, ReporterSettings
from shared import telemetry
from shared.app import Context
from shared.build import BUILD
from shared.contracts.allocation import Allocation
from shared.contracts.readiness import Health, Readiness, ServiceHealth
from shared.contracts.sample import NodeSample
from shared.errors import Unavailable
from shared.settings import check, merge
from shared.wire import Newest

log = structlog.get_logger()


@dataclass(slots=True)
class _Report:
    """A report that is being written, and the view behind it; both are renewed as long as it is under way."""

    view: FieldView
    fragments: dict[str, Fragment]


class ReporterApp:
    """Reports what is applied, never what is wished, and how the node's services are."""

    def __init__(self, context: Context, ports: ReporterPorts, settings: ReporterSettings) -> None:
        """`settings` is the checked static section; a reconfiguration is merged on top of it."""
        self._wire, self._clock = context.wire, context.clock
        self._writer, self._side_task, self._seen = ports.writer, ports.side_task, ports.seen
        self._static, self._switch = dict(context.raw.get(NAME) or {}), context.switch
        self._settings = settings
        self._fields = configured_fields(settings)
        self._offer, self._batch = ReclaimedNodeOffer(settings), BatchNodeOffer(settings)
        self._mid = MidNodeOffer(settings, ports.past)
        self._overcommit = OvercommitReport(settings.overcommit.rules)
        self._binding = KubeletBindingReport(ports.managers)
        self._node_metric = NodeMetricReport(self._wire.node, ports.objects, self._clock, settings, self._mid.lent)
        self._cluster = ClusterReport(self._wire, settings, self._switch, ports.withdrawn)
        self._cpus = CpuReport(self._wire, ports.topology)
        self._statuses, self._statuses_wanted = ResourceStatusReport(ports.pods), asyncio.Event()
        self._want_statuses(settings)
        self._allocation: Newest[Allocation] | None = None
        self._sample: Newest[NodeSample] | None = None
        self._healths: dict[str, Newest[Health]] = {}
        self._started_at = self._clock.monotonic()
        self._judged: JudgedView | None = None
        self._written: dict[str, Fragment] | None = None
        self._written_at = 0.0
        self._written_wall: datetime | None = None
        self._write_failure = ""
        self._services: tuple[ServiceHealth, ...] = ()
        self._readiness: Readiness | None = None
        self._readiness_at = 0.0

    async def run(self) -> None:
        """Work until cancelled."""
        self._recall_past()
        self._allocation = await self._wire.newest(Allocation)
        self._sample = await self._wire.newest(NodeSample)
        for service in self._settings.services:
            await self._listen(service)
        async with asyncio.TaskGroup() as tasks:
            if self._side_task.run is not None:
                tasks.create_task(self._side_task.run(), name="reporter-side-task")
            tasks.create_task(self._node_metric.run(self._sample, self._switch), name="reporter-node-metric")
            tasks.create_task(self._cluster.run(), name="reporter-cluster")
            watched = self._cpus.run(self._sample, self._allocation, lambda: self._settings)
            tasks.create_task(watched, name="reporter-cpus")
            tasks.create_task(self._write_statuses_forever(), name="reporter-resource-statuses")
            await self._report_forever(self._allocation)

    async def _report_forever(self, allocations: Newest[Allocation]) -> None:
        """Report at once on a new allocation, otherwise once every tick."""
        while True:
            # Also without a new one: health, usage and ages move by themselves.
            heard = await allocations.next(self._settings.tick_s)
            # A reconfiguration may add services; existing subscriptions stay.
            for service in self._settings.services:
                await self._listen(service)
            # Before the report, because writing to the API server may take long, and central must not take this node
            # for silent.
            await self._heartbeat()
            if heard is None:
                await self._report()
            else:
                with telemetry.span("reporter.report", {"allocation": heard.ref}, parent=allocations.traceparent):
                    await self._report()
            self._keep_past()

    def _recall_past(self) -> None:
        """A life without a past offers less for a day; that is no reason not to begin."""
        try:
            why = self._mid.recall(self._clock.monotonic(), self._clock.wall().timestamp())
        except Unavailable as error:
            why = str(error)
        if why:
            log.warning("past.not_recalled", why=why)

    def _keep_past(self, *, at_the_end: bool = False) -> None:
        try:
            self._mid.save(self._clock.monotonic(), self._clock.wall().timestamp(), at_the_end=at_the_end)
        except Unavailable as error:
            log.warning("past.not_kept", why=str(error))

    async def _listen(self, service: str) -> None:
        if service not in self._healths:
            self._healths[service] = await self._wire.newest(Health, suffix=f".{service}")

    async def _heartbeat(self) -> None:
        """Fold the services' health; publish on change and when the heartbeat is due."""
        heard = {
            name: (slot.value.health, slot.age_s)
            for name, slot in self._healths.items()
            if slot.value is not None and slot.age_s is not None
        }
        self._services = fold_health(self._settings.services, heard, max_age_s=self._settings.max_health_age_s)
        now = self._clock.monotonic()
        said, mode = self._readiness, self._switch.mode
        same = said is not None and said.mode == mode and facts(said.services) == facts(self._services)
        if same and now - self._readiness_at < self._settings.ready_s:
            return
        ready = all(health.ok for health in self._services)
        readiness = self._wire.stamp(Readiness, ready=ready, mode=mode, services=self._services)
        # Only a sent message counts as published; otherwise a change would be lost with the bus.
        if await self._wire.publish(readiness):
            if not same:
                failing = [f"{h.service}: {h.why}" for h in self._services if not h.ok]
                log.info("readiness.changed", ready=ready, failing=failing)
            self._readiness, self._readiness_at = readiness, now

    async def _report(self) -> None:
        """Write the node's object if it has an urgent change or the refresh is due."""
        if self._wait_for_allocation():
            return
        now = self._clock.monotonic()
        view, since_written_s, refresh_s = self._view(now), now - self._written_at, self._settings.refresh_s
        # Before the write: on the bus a fall arrives at once, however slow the API server is.
        await self._cluster.say_offer(view, self._sample.age_s if self._sample else None)
        if self._judged is not None and self._written is not None and since_written_s < refresh_s:
            self._judged = self._judged.passed_over(view, self._fields, self._written, now)
            if self._judged is not None:
                return
        found, self._judged = fragments(view, self._fields), None
        if not must_write(self._fields, self._written, found, since_written_s=since_written_s, refresh_s=refresh_s):
            self._judged = JudgedView.of(view, self._fields, now)
            return
        told = _Report(view, found)

        def latest() -> dict[str, Any]:
            # The API server may answer late, and what qrm applies meanwhile must not wait behind it.
            if self._allocation is not None and self._allocation.value is not told.view.allocation:
                told.view = self._view(self._clock.monotonic())
                told.fragments = fragments(told.view, self._fields)
            return cnr(self._wire.node, told.fragments)

        try:
            await self._writer.write(latest(), latest)
        # `_written` stays, so that the next tick tries again with what is true then.
        except Unavailable as error:
            if not self._write_failure:
                log.error("report.failed", why=str(error))
            self._write_failure = str(error)
            return
        self._write_failure = ""
        self._written, self._written_at, self._written_wall = told.fragments, now, self._clock.wall()
        based_on = told.view.allocation.ref if told.view.allocation else None
        log.info("report.written", based_on=based_on, fields=sorted(told.fragments))

    async def _write_statuses_forever(self) -> None:
        """Write pods' statuses in a separate task, so that central does not take the node for silent while the API
        server is slow."""
        while True:
            await self._statuses_wanted.wait()
            await self._clock.sleep(self._settings.tick_s)
            await self._write_statuses()

    def _want_statuses(self, settings: ReporterSettings) -> None:
        if settings.resource_status:
            self._statuses_wanted.set()
        else:
            self._statuses_wanted.clear()
            self._statuses.stop()

    async def _write_statuses(self) -> None:
        """Write the CPUs of LSE and LSR pods into their annotations, if enabled and both inputs are new."""
        allocation, sample, settings = self._allocation, self._sample, self._settings
        if not settings.resource_status:
            return
        applied = allocation.value if allocation and allocation.within(settings.max_allocation_age_s) else None
        seen = sample.value if sample and sample.within(settings.max_sample_age_s) else None
        if applied and seen:
            await self._statuses.write(statuses_to_write(seen, applied), self._clock.monotonic())
        # Switched off while the write was pending: its result no longer matters.
        if not self._settings.resource_status:
            self._statuses.stop()

    def _wait_for_allocation(self) -> bool:
        """Whether to wait: after a start, the object of the previous run must stay while qrm is about to publish."""
        waited_s = self._clock.monotonic() - self._started_at
        heard = self._allocation is not None and self._allocation.value is not None
        return not heard and self._written is None and waited_s < self._settings.max_allocation_age_s

    def _view(self, now_s: float) -> FieldView:
        allocation, sample, settings = self._allocation, self._sample, self._settings
        applied = allocation.value if allocation else None
        # A stale allocation stays in the object, because it is still in force; a condition reports that nothing new
        # arrives.
        fresh = bool(allocation and allocation.within(settings.max_allocation_age_s))
        seen = self._colocation_input()
        mid = self._mid.smoothed(seen, now_s)
        batch = self._batch.smoothed(seen, self._mid.withheld, now_s)
        by_numa = self._batch.by_numa(seen)
        fresh_sample = sample.within(settings.max_sample_age_s) if sample else None
        self._overcommit.follow(fresh_sample, seen.capacity, now_s)
        self._binding.follow(wanted=settings.overcommit.enabled and not self._switch.observes)
        if self._switch.observes:  # none, which is not an offer of 0: another system may write these names
            batch, mid, by_numa = None, None, {}
        offered = self._offer.smoothed(applied, now_s, fresh=fresh, withheld=self._mid.withheld)
        _show_offer(None if self._switch.observes else offered)
        return FieldView(
            now=self._clock.wall(),
            allocation=applied,
            allocation_fresh=fresh,
            offered=offered,
            sample=sample.value if sample else None,
            sample_fresh=fresh_sample is not None,
            services=self._services,
            build=BUILD,
            batch=batch,
            batch_by_numa=by_numa,
            mid=mid,
            bearable=() if self._switch.observes or self._binding.failure else self._overcommit.said,
            binding=self._binding.said,
            node_unread=tuple(dict.fromkeys((*self._batch.unread, *self._mid.unread))),
            conditions=(*self._node_metric.conditions(), *self._statuses.conditions(), *self._binding.conditions()),
        )

    def _colocation_input(self) -> ColocationInput:
        sample, node = self._sample, self._seen
        return ColocationInput(
            allocation=self._allocation.value if self._allocation else None,
            sample=sample.value if sample else None,
            sample_age_s=sample.age_s if sample else None,
            node=node() if node is not None else None,
            in_a_cluster=node is not None,
        )

    def _ref(self) -> str | None:
        value = self._allocation.value if self._allocation else None
        return value.ref if value else None

    def health(self) -> ServiceHealth:
        """Well while allocations come and the object can be written."""
        age_s = self._allocation.age_s if self._allocation else None
        why = self._write_failure or self._side_task.failure()
        if age_s is None:
            why = why or "no allocation received yet"
        elif age_s > self._settings.max_allocation_age_s:
            why = why or f"the newest allocation is older than {self._settings.max_allocation_age_s:g} s"
        return ServiceHealth(service=NAME, ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """Return the object as last written, the services' health, and the inputs behind them."""
        sample = self._sample.value if self._sample else None
        return {
            "cnr": None if self._written is None else cnr(self._wire.node, self._written),
            "written_at": None if self._written_wall is None else self._written_wall.isoformat(),
            "write_failure": self._write_failure,
            "services": [health.model_dump(mode="json") for health in self._services],
            "mode": self._switch.mode,
            "ready": bool(self._services) and all(health.ok for health in self._services),
            "allocation": self._ref(),
            "offered": self._offer.state(),
            "batch": self._batch.state(),
            "mid": self._mid.state(),
            "bearable": dict(self._overcommit.said),
            "node_metric": self._node_metric.state(),
            "cluster": {**self._cluster.state(), **self._cpus.state()},
            "allocation_age_s": self._allocation.age_s if self._allocation else None,
            "sample": sample.ref if sample else None,
            "sample_age_s": self._sample.age_s if self._sample else None,
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings, whole or not at all.

        Raises:
            BadConfig: a key or a value cannot be used.
        """
        settings = check(ReporterSettings, merge(self._static, section), where=NAME)
        self._fields, self._judged = configured_fields(settings), None
        self._offer.reconfigure(settings)
        self._batch.reconfigure(settings)
        self._mid.reconfigure(settings)
        self._overcommit.reconfigure(settings.overcommit.rules)
        self._node_metric.reconfigure(settings)
        self._cluster.reconfigure(settings)
        self._want_statuses(settings)
        self._settings = settings

    async def close(self) -> None:
        """End the subscriptions. The object stays, because it reports what is applied until that is removed."""
        self._keep_past(at_the_end=True)
        await self._wire.stop()
        await self._side_task.close()


def _show_offer(offered: Offered | None) -> None:
    """Set the gauges to what the node offers; None: nothing, as before the first allocation or while it observes."""
    telemetry.RECLAIMED_CPU.set(0 if offered is None else offered.cpu_millis / 1000)
    telemetry.RECLAIMED_MEMORY.set(0 if offered is None else offered.memory_bytes)
