"""Maps samples to evictions: the plugins judge each sample at once, and the arbiter begins what no guard refuses.

Every step is in the ledger before it is made. Without a working ledger no pod is evicted, and health says so.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from services.evictor.act.announcer import Announcer
from services.evictor.act.backoff import Backoff
from services.evictor.act.executor import CallLimits, Executor, LastChecks
from services.evictor.act.tainter import Tainter
from services.evictor.arbiter import Arbiter, RoundInput
from services.evictor.core.arbiter.confirmation import Evidence
from services.evictor.core.arbiter.eviction_frequency import by_window_h
from services.evictor.core.arbiter.guards import Refusal, Surroundings
from services.evictor.core.arbiter.ranking import ranking_json
from services.evictor.core.offer import offered, offered_by_numa
from services.evictor.core.plugin import View
from services.evictor.detectors import Detectors
from services.evictor.ports import EvictorPorts
from services.evictor.record.journal import IntentJournal
from services.evictor.record.outbox import Outbox
from services.evictor.record.refusals import RefusalBook
from services.evictor.settings import NAME, EvictorSettings, bounded_plugins, enabled_plugins, read
from shared import telemetry
from shared.app import Context
from shared.contracts.allocation import Allocation
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.evictions.intents import IntentRecord, Spent
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
        wire, ledger, taints = context.wire, ports.ledger, ports.taints
        self._wire, self._clock, self._ledger, self._ports = wire, context.clock, ledger, ports
        self._static: Mapping[str, Any] = context.raw.get(NAME) or {}
        self._settings = settings
        self._switch = context.switch
        self._detectors = Detectors(bounded_plugins(enabled_plugins(settings), self._switch.mode))
        self._outbox = Outbox(ledger, wire.bus, self._clock)
        self._journal = IntentJournal(ledger, wire, written=self._outbox.wake)
        self._refusals = RefusalBook(ledger)
        self._arbiter = Arbiter(self._detectors, self._journal, ledger, self._refusals, self._start)
        announcer = Announcer(ledger, wire.bus, self._clock, self._outbox.assign_another_id)
        checks = LastChecks(self._evidence, ports.paused, lambda: self._switch.observes)
        self._executor = Executor(self._journal, announcer, ports.actuator, self._clock, checks)
        self._backoff = Backoff()
        self._tainter = Tainter(taints, self._clock) if taints is not None else None
        self._running: dict[str, IntentRecord] = {}
        self._samples: Newest[NodeSample] | None = None
        self._allocations: Newest[Allocation] | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._ledger_open = False
        self._closed = "the evictor is starting"
        """Why nobody is evicted at all; "" while the ledger works."""
        self._for_good = False

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            Conflict: another evictor has the ledger.
        """
        self._samples = await self._wire.newest(NodeSample)
        self._allocations = await self._wire.newest(Allocation)
        try:
            self._open_ledger()
        # Not the end of the evictor: it goes on judging and tainting, and `_maintain` tries the ledger again.
        except Unavailable as error:
            self._lose_ledger(error)
        async with asyncio.TaskGroup() as self._tasks:
            self._maintain()
            self._tasks.create_task(self._outbox.run(), name="evictor-outbox")
            self._tasks.create_task(self._maintenance(), name="evictor-maintenance")
            if self._tainter is not None:
                self._tasks.create_task(self._tainter.run(), name="evictor-taints")
            while True:
                sample = await self._samples.next()
                if sample is not None:
                    self._judge(sample)

    def health(self) -> ServiceHealth:
        """Not well without a working ledger or without fresh samples."""
        age_s = self._samples.age_s if self._samples is not None else None
        # The ledger before the sample: without it nobody is evicted, however fresh the figures are.
        why = self._closed
        if not why and (age_s is None or age_s > self._settings.max_input_age_s):
            why = "no fresh sample"
        return ServiceHealth(service="evictor", ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """The plugins' findings, what is held back and why, and the newest evictions with their numbers."""
        now_s = self._clock.monotonic()
        try:
            recent, waiting = self._ledger.recent(20), self._ledger.waiting_count()
        except Unavailable as error:
            recent, waiting = [{"error": str(error)}], None
        return {
            "plugins": self._detectors.state(now_s, self._settings.rules, self._journal, self._busy()),
            "conditions": [
                *self._detectors.conditions(self._settings.rules, self._journal, self._closed, now_s),
                *([{"type": "MessageIdTaken", "message": why}] if (why := self._outbox.alarm) else []),
                *([{"type": "EvictionsPaused", "message": why}] if (why := self._ports.paused()) else []),
                *(self._tainter.conditions() if self._tainter is not None else []),
            ],
            "taints": self._tainter.state() if self._tainter is not None else None,
            "refusals": self._refusals.state(now_s),
            "outlook": {
                name: ranking_json(ranking) for name, ranking in self._detectors.rankings(self._around()).items()
            },
            "node_mode": self._switch.mode,
            "live": [record.intent.model_dump(mode="json") for record in self._running.values()],
            "recent": recent,
            "events": [
                {"event_id": message["id"], "published": message["published"]}
                for row in recent
                for message in row.get("events", ())
                if message["id"] != row["intent"]["intent_id"]
            ],
            "outbox": waiting,
            "evicted_last_hour": sum(_carried_out(one, now_s) for one in self._journal.spent),
            "config_rev": self._wire.config_rev,
            "ledger": self._closed or "ok",
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Apply new settings whole, or none of them.

        Raises:
            BadConfig: they cannot be used.
        """
        # Onto the static section, and not onto what holds now: a key that is taken out of the
        # configuration falls back to it.
        self._settings, plugins = read(merge(self._static, section))
        self._detectors.configure(bounded_plugins(plugins, self._switch.mode))

    async def close(self) -> None:
        """Release the ledger; what is unfinished goes on at the next start."""
        try:
            self._refusals.write(self._clock.monotonic(), all_of_it=True)
        except Unavailable as error:
            log.warning("ledger.refusals_lost", why=str(error))
        finally:
            self._ledger.close()
            if self._ports.release is not None:
                await self._ports.release()

    def _judge(self, sample: NodeSample) -> None:
        """Run one round: evaluate, confirm, choose, begin."""
        now_s = self._clock.monotonic()
        with telemetry.span("evictor.judge", {"sample": sample.seq}):
            findings = self._detectors.evaluate(self._view(sample, now_s), self._settings.rules)
            # Before the ledger is touched: a node under pressure keeps new pods away even where nobody can be evicted.
            self._taint(now_s)
            try:
                self._detectors.note_relief(findings, self._journal)
                self._arbiter.round(self._round_input(sample, now_s), self._settings, self._barred())
                if not self._closed:
                    self._refusals.write(now_s)
            except Unavailable as error:
                self._lose_ledger(error)
        telemetry.STEP_SECONDS.labels("evictor").observe(self._clock.monotonic() - now_s)

    def _taint(self, now_s: float) -> None:
        if self._tainter is not None:
            rules, transition_s = self._settings.rules, self._settings.condition_transition_s
            findings = self._detectors.findings(rules)
            self._tainter.observe(findings, now_s, transition_s=transition_s, max_input_age_s=rules.max_input_age_s)

    def _view(self, sample: NodeSample, now_s: float) -> View:
        allocation = self._allocation()
        evicted = by_window_h((reading.pod for reading in sample.pods), self._journal.spent, now_s)
        return View(now_s, sample, offered(allocation), offered_by_numa(allocation), allocation, evicted)

    def _round_input(self, sample: NodeSample, now_s: float) -> RoundInput:
        # A copy: the round itself starts evictions, which add to `_running`.
        running, backing_off = tuple(self._running.values()), self._backoff.waiting(now_s)
        return RoundInput(now_s, sample, self._allocation(), running, backing_off)

    def _barred(self) -> Refusal | None:
        """Why nobody at all is evicted now."""
        if self._closed:
            return Refusal("", "ledger_closed", says=f"without a working ledger nobody is evicted: {self._closed}")
        if why := self._ports.paused():
            return Refusal("", "paused", says=f"evictions are paused on this node: {why}")
        return None

    def _start(self, record: IntentRecord) -> None:
        if self._tasks is None:
            raise RuntimeError("evictions start only while the evictor runs")
        self._running[record.id] = record
        self._tasks.create_task(self._carry_out(record), name=f"eviction-{record.id}")

    async def _carry_out(self, record: IntentRecord) -> None:
        limits = CallLimits(self._settings.announce_s, self._settings.call_timeout_s)
        try:
            ended = await self._executor.carry_out(record, limits)
            # Also when it was called off: without a pause the next sample would choose the same pod
            # again, and again in vain.
            if ended.step != "succeeded":
                self._backoff.add(ended.pod.uid, self._clock.monotonic())
        except Unavailable as error:  # bus and actuator answer for themselves: only the ledger is left
            self._lose_ledger(error)
        finally:
            # Without an end in the ledger the intent stays live there, and `_maintain` takes it up again.
            self._running.pop(record.id, None)

    async def _maintenance(self) -> None:
        while True:
            await self._clock.sleep(MAINTENANCE_S)
            self._maintain()
            self._backoff.forget(self._clock.monotonic())
            self._refusals.forget(self._clock.monotonic())

    def _maintain(self) -> None:
        """Open the ledger or prove that it works; then go on with what it has unfinished."""
        # A damaged ledger was moved aside: what it had under way and had spent is unknown, and only a
        # restart begins anew.
        if self._for_good:
            return
        try:
            if not self._ledger_open:
                self._open_ledger()
            # It writes in every case, so this is also the proof that the disk takes writes again.
            self._ledger.prune(self._clock.monotonic())
            # The memory of before may be older than the file: everything is read anew, and what is unfinished goes on.
            if self._closed and not self._for_good:
                self._closed = ""
                self._journal.load()
                self._refusals.load()
                for record in self._ledger.live():
                    # A ledger that failed for a moment leaves running evictions alone: two tasks for
                    # one intent would call twice.
                    if record.id not in self._running:
                        self._start(record)
                self._outbox.wake()
        except Unavailable as error:
            self._lose_ledger(error)

    def _open_ledger(self) -> None:
        # Seconds since 1970: higher than any number that a ledger before this one can have given out.
        damage = self._ledger.open(first_episode=int(self._clock.wall().timestamp()))
        self._ledger_open = True
        if damage:
            self._for_good, self._closed = True, f"{damage}; nobody is evicted until the evictor starts again"
            log.error("ledger.broken", why=self._closed)

    def _lose_ledger(self, error: Unavailable) -> None:
        """Fail closed: no eviction begins or continues until the ledger can be written again."""
        if self._closed != str(error):
            log.error("ledger.unavailable", why=str(error))
        # `_maintain` opens the file anew, and looks whether it is whole, before anything goes on.
        self._closed, self._ledger_open = str(error), False

    def _evidence(self, plugin: str) -> Evidence:
        return self._detectors.evidence(plugin, self._clock.monotonic(), self._settings.rules)

    def _allocation(self) -> Allocation | None:
        return self._allocations.within(self._settings.max_allocation_age_s) if self._allocations is not None else None

    def _around(self) -> Surroundings:
        running = {record.pod.uid for record in self._running.values()}
        return Surroundings(
            self._settings.protected_namespaces, running, self._backoff.waiting(self._clock.monotonic())
        )

    def _busy(self) -> set[str]:
        """Plugins with an eviction under way."""
        return {record.intent.plugin for record in self._running.values()}


def _carried_out(spent: Spent, now_s: float) -> bool:
    """Whether it was a real eviction that ended within the last hour."""
    return spent.mode == "enforce" and spent.at_s is not None and spent.age_s(now_s) < HOUR_S
