"""Maps samples to evictions: the plugins judge each sample at once, and the arbiter begins evictions that no guard
forbids.

Each step is in the ledger before it is taken. Without a working ledger no pod is evicted, and the health says so.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import structlog

from services.evictor.act.announcer import Announcer
from services.evictor.act.executor import CallLimits, Executor, LastChecks
from services.evictor.act.running import RunningEvictions
from services.evictor.act.tainter import Tainter
from services.evictor.arbiter import Arbiter, RoundInput
from services.evictor.core.arbiter.confirmation import Evidence
from services.evictor.core.arbiter.eviction_frequency import by_window_h
from services.evictor.core.arbiter.guards import Refusal, Surroundings
from services.evictor.core.arbiter.ranking import ranking_json
from services.evictor.core.offer import offered, offered_by_numa
from services.evictor.core.plugin import View
from services.evictor.detectors import Detectors
from services.evictor.ports import EvictorPorts, PausesOfCluster
from services.evictor.record.supervision import LedgerSupervisor
from services.evictor.settings import NAME, EvictorSettings, bounded_plugins, enabled_plugins, read
from shared import telemetry
from shared.app import Context
from shared.contracts.allocation import Allocation
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.cluster.pauses import PAUSES_KEY
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.evictions.intents import Spent
from shared.errors import Unavailable
from shared.settings import merge
from shared.wire import Newest

log = structlog.get_logger()

MAINTENANCE_S = 10.0
HOUR_S = 3600.0


class EvictorApp:
    """The evictor of one node."""

    def __init__(self, context: Context, ports: EvictorPorts, settings: EvictorSettings) -> None:
        """Raises BadConfig where the section of an enabled plugin cannot be used."""
        self._context, self._ports, self._settings = context, ports, settings
        self._ledger = LedgerSupervisor(ports.ledger, context.wire)
        plugins = bounded_plugins(enabled_plugins(settings), context.switch.mode)
        self._detectors = Detectors(plugins, settings.rules, self._ledger.journal)
        self._evictions = RunningEvictions(self._executor(), context.clock, self._limits, self._ledger.lose)
        self._arbiter = Arbiter(
            self._detectors, self._ledger.journal, ports.ledger, self._ledger.refusals, self._evictions.start
        )
        self._tainter = Tainter(ports.taints, context.clock) if ports.taints is not None else None
        self._samples: Newest[NodeSample] | None = None
        self._allocations: Newest[Allocation] | None = None

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            Conflict: another evictor has the ledger.
        """
        self._samples = await self._context.wire.newest(NodeSample)
        self._allocations = await self._context.wire.newest(Allocation)
        # An unusable ledger is not the end of the evictor: it still judges and taints.
        self._ledger.begin()
        async with asyncio.TaskGroup() as tasks:
            self._evictions.run_in(tasks)
            self._maintain()
            tasks.create_task(self._ledger.outbox.run(), name="evictor-outbox")
            tasks.create_task(self._ledger.outbox.look_back.run(), name="evictor-look-back")
            tasks.create_task(self._maintenance(), name="evictor-maintenance")
            if (pauses := self._ports.cluster_pauses) is not None:
                tasks.create_task(self._follow_pauses(pauses), name="evictor-pauses")
            if self._tainter is not None:
                tasks.create_task(self._tainter.run(), name="evictor-taints")
            while True:
                sample = await self._samples.next()
                if sample is not None:
                    self._judge(sample, self._samples.traceparent)

    def health(self) -> ServiceHealth:
        """Not well without a working ledger or without fresh samples."""
        age_s = self._samples.age_s if self._samples is not None else None
        # The ledger before the sample: without it no pod is evicted, however fresh the figures are.
        why = self._ledger.closed
        if not why and (age_s is None or age_s > self._settings.max_input_age_s):
            why = "no fresh sample"
        return ServiceHealth(service="evictor", ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """The plugins' findings, what is held back and why, and the newest evictions with their numbers."""
        now_s, ledger = self._context.clock.monotonic(), self._ledger
        lately = [one for one in ledger.journal.spent if _ended_lately(one, now_s)]
        try:
            recent, waiting = ledger.ledger.recent(20), ledger.ledger.waiting_count()
        except Unavailable as error:
            recent, waiting = [{"error": str(error)}], None
        return {
            "plugins": self._detectors.state(now_s, self._evictions.plugins),
            "conditions": [
                *self._detectors.conditions(ledger.closed, now_s),
                *([{"type": "MessageIdTaken", "message": why}] if (why := ledger.outbox.alarm) else []),
                *([{"type": "EvictionsPaused", "message": why}] if (why := self._paused()) else []),
                *(self._tainter.conditions() if self._tainter is not None else []),
            ],
            "taints": self._tainter.state() if self._tainter is not None else None,
            "refusals": ledger.refusals.state(now_s),
            "outlook": {
                name: ranking_json(ranking) for name, ranking in self._detectors.rankings(self._around()).items()
            },
            "node_mode": self._context.switch.mode,
            "live": [record.intent.model_dump(mode="json") for record in self._evictions.records],
            "recent": recent,
            "events": [
                {"event_id": message["id"], "published": message["published"]}
                for row in recent
                for message in row.get("events", ())
                if message["id"] != row["intent"]["intent_id"]
            ],
            "outbox": waiting,
            "evicted_last_hour": sum(one.mode == "enforce" for one in lately),
            "rehearsed_last_hour": sum(one.mode != "enforce" for one in lately),
            "config_rev": self._context.wire.config_rev,
            "ledger": ledger.closed or "ok",
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Apply new settings whole, or none of them.

        Raises:
            BadConfig: they cannot be used.
        """
        # Onto the static section, and not onto what holds now: a key that is taken out of the
        # configuration falls back to it.
        self._settings, plugins = read(merge(self._context.raw.get(NAME) or {}, section))
        self._detectors.configure(bounded_plugins(plugins, self._context.switch.mode), self._settings.rules)

    async def close(self) -> None:
        """Close the ledger; unfinished evictions continue at the next start."""
        try:
            self._ledger.close()
        finally:
            if self._ports.release is not None:
                await self._ports.release()

    def _judge(self, sample: NodeSample, traceparent: str = "") -> None:
        """Run one round: evaluate, confirm, choose, begin. An eviction that it begins continues the sample's trace."""
        now_s = self._context.clock.monotonic()
        with telemetry.span("evictor.judge", {"sample": sample.ref}, parent=traceparent):
            findings = self._detectors.evaluate(self._view(sample, now_s))
            # Before the ledger is used: a node under pressure keeps new pods away even if no pod can be evicted.
            self._taint(now_s)
            try:
                self._detectors.note_relief(findings)
                self._arbiter.round(self._round_input(sample, now_s), self._settings, self._barred())
                self._ledger.write_refusals(now_s)
            except Unavailable as error:
                self._ledger.lose(error)
        telemetry.STEP_SECONDS.labels("evictor").observe(self._context.clock.monotonic() - now_s)

    def _taint(self, now_s: float) -> None:
        if self._tainter is not None:
            self._tainter.observe(
                self._detectors.findings(),
                now_s,
                transition_s=self._settings.condition_transition_s,
                max_input_age_s=self._settings.max_input_age_s,
            )

    def _view(self, sample: NodeSample, now_s: float) -> View:
        allocation = self._allocation()
        evicted = by_window_h((reading.pod for reading in sample.pods), self._ledger.journal.spent, now_s)
        max_gap_s = self._settings.max_input_age_s
        return View(now_s, sample, offered(allocation), offered_by_numa(allocation), allocation, evicted, max_gap_s)

    def _round_input(self, sample: NodeSample, now_s: float) -> RoundInput:
        evictions = self._evictions
        return RoundInput(now_s, sample, self._allocation(), evictions.records, evictions.backing_off(now_s))

    def _barred(self) -> Refusal | None:
        """Return why no pod at all may be evicted now, or None."""
        if closed := self._ledger.closed:
            return Refusal("", "ledger_closed", says=f"without a working ledger nobody is evicted: {closed}")
        if why := self._paused():
            return Refusal("", "paused", says=f"evictions are paused on this node: {why}")
        return None

    async def _maintenance(self) -> None:
        while True:
            await self._context.clock.sleep(MAINTENANCE_S)
            self._maintain()
            self._evictions.forget()
            self._ledger.refusals.forget(self._context.clock.monotonic())

    def _maintain(self) -> None:
        """Check that the ledger works; once it works again, continue its unfinished evictions."""
        self._evictions.resume(self._ledger.maintain())

    def _paused(self) -> str:
        """Why people have paused evictions on this node, in its pool or in the cluster; "" when nobody has."""
        pauses = self._ports.cluster_pauses
        return self._ports.paused() or (pauses.why() if pauses is not None else "")

    async def _follow_pauses(self, pauses: PausesOfCluster) -> None:
        with contextlib.suppress(Unavailable):
            await self._context.wire.bus.watch(CONFIG_BUCKET, pauses.follow_entry, keys=(PAUSES_KEY,))
        await pauses.run()

    def _executor(self) -> Executor:
        context, ports, ledger = self._context, self._ports, self._ledger
        announcer = Announcer(ports.ledger, context.wire.bus, context.clock, ledger.outbox.assign_another_id)
        checks = LastChecks(self._evidence, self._paused, lambda: context.switch.observes)
        return Executor(ledger.journal, announcer, ports.actuator, context.clock, checks)

    def _limits(self) -> CallLimits:
        return CallLimits(self._settings.announce_s, self._settings.call_timeout_s)

    def _evidence(self, plugin: str) -> Evidence:
        return self._detectors.evidence(plugin, self._context.clock.monotonic())

    def _allocation(self) -> Allocation | None:
        return self._allocations.within(self._settings.max_allocation_age_s) if self._allocations is not None else None

    def _around(self) -> Surroundings:
        evictions, now_s = self._evictions, self._context.clock.monotonic()
        return Surroundings(self._settings.protected_namespaces, evictions.pods, evictions.backing_off(now_s))


def _ended_lately(spent: Spent, now_s: float) -> bool:
    """Whether an eviction, or a rehearsal of one, has ended within the last hour."""
    return spent.at_s is not None and spent.age_s(now_s) < HOUR_S
