"""Report what this node uses as Koordinator's NodeMetric: a sample at a time in, its object at the API server out.

Samples are taken in as they come; the object is written by a timer, and only what has changed. Before each report it
is read: its spec says what is collected, and nothing is written while somebody else writes it.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import structlog

from services.reporter.core.mid.reclaimable import ProdReclaimable
from services.reporter.core.node_metric.collect_policy import collect_policy
from services.reporter.core.node_metric.figures import NodeMetricFigures, node_metric_figures
from services.reporter.core.node_metric.status import left_over, node_metric_status
from services.reporter.core.node_metric.usage_series import BYTES_PER_SLOT
from services.reporter.core.node_metric.usage_windows import UsageWindows, UsedResources
from services.reporter.core.node_metric.writer_turn import ReportTime, WriterTurn
from services.reporter.settings import NodeMetricSettings, ReporterSettings
from shared.contracts.allocation import Condition
from shared.contracts.sample import NodeSample
from shared.core.api_kind import NODE_METRICS, NODES
from shared.core.node_mode import NodeSwitch
from shared.core.object_reader import uid_of
from shared.errors import Conflict, Refused, Unavailable
from shared.ports import Clock, Objects
from shared.wire import Newest

log = structlog.get_logger()

MANAGER = "sublet-node-metric"
"""The field manager of what is written here, that of another object."""
FIRST_S = 10.0
"""Of a fresh start, the first figures are written once samples came for so long."""
UNCHANGED_S = 240.0
"""Figures that have not changed are written again: a scheduler of Koordinator's takes those of 300 s for expired."""
RETRY_S = 10.0
Lent = Callable[[], ProdReclaimable | None]
NO_API_SERVER = "there is no API server here; set reporter.node_metric.enabled: false"


class NodeMetricReport:
    """Keeps the uses of this node, and its NodeMetric as they are; nothing unless the settings say so."""

    def __init__(
        self, node: str, objects: Objects | None, clock: Clock, settings: ReporterSettings, lent: Lent
    ) -> None:
        """`lent` says what prod pods lend now."""
        self._node, self._objects, self._clock, self._lent = node, objects, clock, lent
        self._settings = settings
        self._policy = settings.node_metric.collected
        self._windows: UsageWindows | None = None
        self._began_s = self._sampled_s = 0.0
        self._written: NodeMetricFigures | None = None
        self._written_s = self._due_s = 0.0
        self._writes = 0
        self._failure = ""
        self._turn = WriterTurn(MANAGER)
        self._wanted = asyncio.Event()
        self.reconfigure(settings)

    def reconfigure(self, settings: ReporterSettings) -> None:
        """Take new settings."""
        self._settings = settings
        if self._ours.enabled and self._objects is not None:
            self._wanted.set()
        else:
            self._wanted.clear()

    async def run(self, samples: Newest[NodeSample], switch: NodeSwitch) -> None:
        """Work until cancelled; write nothing while the node observes, for then somebody else may write it."""
        # A write may take long, so samples are added meanwhile.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(samples), name="reporter-node-metric-samples")
            tasks.create_task(self._report_forever(switch), name="reporter-node-metric-writes")

    def conditions(self) -> tuple[Condition, ...]:
        """What somebody should know of it: what is not followed, why it is not written, who else writes it."""
        if not self._ours.enabled:
            return ()
        found = {
            "NodeMetricSpecNotFollowed": "; ".join(self._policy.unread),
            "NodeMetricNotWritten": self._failure if self._objects is not None else NO_API_SERVER,
            "NodeMetricTwoWriters": self._two_writers(),
        }
        return tuple(Condition(type=kind, message=why) for kind, why in found.items() if why)

    def state(self) -> dict[str, Any] | None:
        """How it stands, for `status`; None while it is off."""
        if not self._ours.enabled:
            return None
        windows = self._windows
        return {
            "report_s": self._policy.report_s,
            "writes": self._writes,
            "written_s_ago": None if self._written is None else round(self._clock.monotonic() - self._written_s, 1),
            "kept_bytes": windows.kept_slots * BYTES_PER_SLOT if windows is not None else 0,
            "conditions": [condition.model_dump(mode="json") for condition in self.conditions()],
        }

    @property
    def _ours(self) -> NodeMetricSettings:
        return self._settings.node_metric

    def _two_writers(self) -> str:
        turn = self._turn
        if not turn.other:
            return ""
        return (
            f"field manager {turn.other!r} writes NodeMetric {self._node} too: Sublet writes none until nobody has for "
            f"{turn.wait_s:g} s; give koordlet --enable-node-metric-report=false, or set reporter.node_metric.enabled: "
            "false here"
        )

    async def _follow(self, samples: Newest[NodeSample]) -> None:
        while True:
            if not self._wanted.is_set():
                await self._wanted.wait()
                await samples.next(timeout_s=0)  # what came meanwhile may be old
            sample = await samples.next(self._settings.tick_s)
            now_s = self._clock.monotonic()
            if not self._ours.enabled or self._objects is None:
                self._windows = self._written = None
                self._turn = WriterTurn(MANAGER)
            elif sample is not None:
                if self._windows is None:
                    self._windows, self._began_s = UsageWindows(self._policy), now_s
                self._windows.add(sample, now_s)
                self._sampled_s = now_s

    async def _report_forever(self, switch: NodeSwitch) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(self._settings.tick_s)
            if switch.observes:
                self._written, self._failure, self._due_s, self._turn = None, "", 0.0, WriterTurn(MANAGER)
                continue
            now_s = self._clock.monotonic()
            if self._objects is None or self._windows is None or now_s < max(self._due_s, self._began_s + FIRST_S):
                continue
            # On old samples it grows old as well, which its readers see.
            if now_s - self._sampled_s > self._settings.max_sample_age_s:
                continue
            try:
                await self._report(self._objects)
            except (Unavailable, Refused, Conflict) as error:
                if not self._failure:
                    log.error("node_metric.failed", why=str(error))
                self._failure, self._due_s = str(error), now_s + RETRY_S
                # The current state is unknown: the object may have been deleted.
                self._written = None
            else:
                self._failure = ""

    async def _report(self, objects: Objects) -> None:
        standing = await self._standing(objects)
        # Before the first write, because the author of the spec decides what is collected.
        self._follow_spec(standing)
        now_s, period_s = self._clock.monotonic(), self._policy.report_s
        if not self._turn.is_ours(standing, ReportTime(now_s, self._clock.wall(), period_s)):
            self._written = None
            self._due_s = now_s + min(period_s, self._turn.left_s)
            return
        figures = None if self._windows is None else node_metric_figures(self._windows, self._policy, now_s)
        # Unknown uses, as after a change of the spec, are no news.
        if figures is None:
            self._due_s = now_s + FIRST_S
            return
        if (lent := self._lent()) is not None:
            peak = None if lent.peak is None else UsedResources(lent.peak.cpu_millis, lent.peak.memory_bytes)
            reclaimable = UsedResources(lent.cpu_millis, lent.memory_bytes)
            figures = replace(figures, prod_reclaimable=reclaimable, prod_peak=peak)
        self._due_s = now_s + period_s
        # If it was deleted, it is meant to be recreated.
        if self._written is not None and not self._news(self._written, figures, now_s) and standing.get("status"):
            return
        self._turn.began_write()
        answer = await self._write(objects, figures)
        self._turn.wrote(answer)
        self._written, self._written_s = figures, now_s

    def _news(self, written: NodeMetricFigures, figures: NodeMetricFigures, now_s: float) -> bool:
        old = now_s - self._written_s >= max(UNCHANGED_S, self._policy.report_s)
        return old or figures.differs(written, self._ours.change_percent)

    async def _standing(self, objects: Objects) -> Mapping[str, Any]:
        """The object as it is there; made where it is missing."""
        standing = await objects.get(NODE_METRICS, self._node)
        if standing is not None:
            return standing
        # Of a Node that is gone the API server deletes what it owns.
        owner = uid_of(await objects.get(NODES, self._node))
        about: dict[str, Any] = {"name": self._node}
        if owner:
            about["ownerReferences"] = [{**NODES.head, "name": self._node, "uid": owner}]
        try:
            return await objects.create(NODE_METRICS, {"metadata": about, "spec": {}})
        except Refused as error:
            if error.reason not in ("NotFound", "404"):
                raise
            raise Refused(f"NodeMetric {self._node}: {error}: the kind is not installed; kubectl apply -k "
                          "deploy/k8s/crds", reason=error.reason) from error  # fmt: skip

    async def _write(self, objects: Objects, figures: NodeMetricFigures) -> Mapping[str, Any]:
        status = node_metric_status(figures, self._clock.wall())
        named = {"metadata": {"name": self._node}}
        answer: Mapping[str, Any] = await objects.apply(
            NODE_METRICS, {**named, "status": status}, manager=MANAGER, status=True
        )
        self._writes += 1
        others = left_over(answer.get("status"), status)
        if others:
            answer = await objects.patch(NODE_METRICS, {**named, "status": others}, status=True) or answer
        return answer

    def _follow_spec(self, node_metric: Mapping[str, Any]) -> None:
        before, self._policy = self._policy, collect_policy(node_metric, self._ours.collected)
        if self._policy.collected != before.collected and self._windows is not None:
            self._windows, self._began_s = UsageWindows(self._policy), self._clock.monotonic()
            log.info("node_metric.collected_anew", policy=self._policy.collected)
