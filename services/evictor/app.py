"""The evictor: every sample is judged at once, the arbiter begins what nothing speaks against, every step is written.

Without a working ledger nobody is evicted, and health says so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from services.evictor.act.announcer import Announcer
from services.evictor.act.backoff import Backoff
from services.evictor.act.executor import Evidence, Executor, Patience
from services.evictor.act.tainter import Tainter
from services.evictor.arbiter import Arbiter, Moment
from services.evictor.core.arbiter.eviction_frequency import by_window_h
from services.evictor.core.arbiter.guards import Refusal, Surroundings
from services.evictor.core.arbiter.outlook import told
from services.evictor.core.offer import offered, offered_by_numa
from services.evictor.core.plugin import View
from services.evictor.panel import Panel
from services.evictor.record.clerk import Clerk
from services.evictor.record.ledger import Ledger
from services.evictor.record.outbox import Outbox
from services.evictor.record.refusals import RefusalBook
from services.evictor.settings import read
from shared import telemetry
from shared.contracts.allocation import Allocation
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.evictions.intents import IntentRecord
from shared.errors import Unavailable
from shared.ports import EvictionActuator, NodeTaints
from shared.settings import merge
from shared.wire import Newest, Wire

log = structlog.get_logger()

HOUSEKEEPING_S = 10.0


class EvictorApp:
    """Maps samples to evictions."""

    def __init__(
        self,
        wire: Wire,
        ledger: Ledger,
        actuator: EvictionActuator,
        section: Mapping[str, Any],
        paused: Callable[[], str] = lambda: "",
        taints: NodeTaints | None = None,
        release: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._release = release
        """Lets go of what the actuator and the taints hold open."""
        self._wire, self._clock, self._ledger, self._static = wire, wire.clock, ledger, section
        self._paused = paused
        """Why nobody may be evicted on this node now; "" when evictions go on."""
        self._settings, plugins = read(section)
        self._panel = Panel(plugins)
        self._outbox = Outbox(ledger, wire.bus, self._clock)
        self._clerk = Clerk(ledger, wire, written=self._outbox.wake)
        self._refusals = RefusalBook(ledger)
        self._arbiter = Arbiter(self._panel, self._clerk, ledger, self._refusals, self._start)
        announcer = Announcer(ledger, wire.bus, self._clock, self._outbox.take_another_id)
        self._executor = Executor(self._clerk, announcer, actuator, self._clock, evidence=self._evidence, paused=paused)
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
        except Unavailable as error:
            self._lose_ledger(error)
        async with asyncio.TaskGroup() as self._tasks:
            self._keep_house()
            self._tasks.create_task(self._outbox.run(), name="evictor-outbox")
            self._tasks.create_task(self._housekeeping(), name="evictor-housekeeping")
            if self._tainter is not None:
                self._tasks.create_task(self._tainter.run(), name="evictor-taints")
            while True:
                sample = await self._samples.next()
                if sample is not None:
                    self._judge(sample)

    def health(self) -> ServiceHealth:
        """Not well without a working ledger or without fresh samples."""
        age_s = self._samples.age_s if self._samples is not None else None
        why = self._closed
        if not why and (age_s is None or age_s > self._settings.max_input_age_s):
            why = "no fresh sample"
        return ServiceHealth(service="evictor", ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """What is seen, what is held back and why, and the newest evictions with their numbers."""
        now_s = self._clock.monotonic()
        try:
            recent, waiting = self._ledger.recent(20), self._ledger.waiting_count()
        except Unavailable as error:
            recent, waiting = [{"error": str(error)}], None
        return {
            "plugins": self._panel.state(now_s, self._settings.rules, self._clerk, self._busy()),
            "conditions": [
                *self._panel.conditions(self._settings.rules, self._clerk, self._closed, now_s),
                *([{"type": "MessageIdTaken", "message": why}] if (why := self._outbox.alarm) else []),
                *([{"type": "EvictionsPaused", "message": why}] if (why := self._paused()) else []),
                *(self._tainter.conditions() if self._tainter is not None else []),
            ],
            "taints": self._tainter.state() if self._tainter is not None else None,
            "refusals": self._refusals.state(now_s),
            "outlook": {name: told(seen) for name, seen in self._panel.outlooks(self._around()).items()},
            "live": [record.intent.model_dump(mode="json") for record in self._running.values()],
            "recent": recent,
            "events": [
                {"event_id": message["id"], "published": message["published"]}
                for row in recent
                for message in row.get("events", ())
                if message["id"] != row["intent"]["intent_id"]
            ],
            "outbox": waiting,
            "config_rev": self._wire.config_rev,
            "ledger": self._closed or "ok",
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings whole, or none of them.

        Raises:
            BadConfig: they cannot be used.
        """
        self._settings, plugins = read(merge(self._static, section))
        self._panel.configure(plugins)

    async def close(self) -> None:
        """Give the ledger back; what is unfinished goes on at the next start."""
        try:
            self._refusals.write(self._clock.monotonic(), all_of_it=True)
        except Unavailable as error:
            log.warning("ledger.refusals_lost", why=str(error))
        finally:
            self._ledger.close()
            if self._release is not None:
                await self._release()

    def _judge(self, sample: NodeSample) -> None:
        """One round: look, confirm, choose, begin."""
        now_s = self._clock.monotonic()
        with telemetry.span("evictor.judge", {"sample": sample.seq}):
            findings = self._panel.look(self._view(sample, now_s), self._settings.rules)
            self._taint(now_s)
            try:
                self._panel.note_relief(findings, self._clerk)
                self._arbiter.round(self._moment(sample, now_s), self._settings, self._barred())
                if not self._closed:
                    self._refusals.write(now_s)
            except Unavailable as error:
                self._lose_ledger(error)
        telemetry.STEP_SECONDS.labels("evictor").observe(self._clock.monotonic() - now_s)

    def _taint(self, now_s: float) -> None:
        if self._tainter is not None:
            rules, transition_s = self._settings.rules, self._settings.condition_transition_s
            told = self._panel.told(rules)
            self._tainter.see(told, now_s, transition_s=transition_s, max_input_age_s=rules.max_input_age_s)

    def _view(self, sample: NodeSample, now_s: float) -> View:
        allocation = self._allocation()
        evicted = by_window_h((reading.pod for reading in sample.pods), self._clerk.spent, now_s)
        return View(now_s, sample, offered(allocation), offered_by_numa(allocation), allocation, evicted)

    def _moment(self, sample: NodeSample, now_s: float) -> Moment:
        return Moment(now_s, sample, self._allocation(), tuple(self._running.values()), self._backoff.waiting(now_s))

    def _barred(self) -> Refusal | None:
        """Why nobody at all is evicted now."""
        if self._closed:
            return Refusal("", "ledger_closed", says=f"without a working ledger nobody is evicted: {self._closed}")
        if why := self._paused():
            return Refusal("", "paused", says=f"evictions are paused on this node: {why}")
        return None

    def _start(self, record: IntentRecord) -> None:
        if self._tasks is None:
            raise RuntimeError("evictions start only while the evictor runs")
        self._running[record.id] = record
        self._tasks.create_task(self._carry_out(record), name=f"eviction-{record.id}")

    async def _carry_out(self, record: IntentRecord) -> None:
        patience = Patience(self._settings.announce_s, self._settings.call_timeout_s)
        try:
            ended = await self._executor.carry_out(record, patience)
            if ended.step != "succeeded":
                self._backoff.add(ended.pod.uid, self._clock.monotonic())
        except Unavailable as error:  # bus and actuator answer for themselves: only the ledger is left
            self._lose_ledger(error)
        finally:
            self._running.pop(record.id, None)

    async def _housekeeping(self) -> None:
        while True:
            await self._clock.sleep(HOUSEKEEPING_S)
            self._keep_house()
            self._backoff.forget(self._clock.monotonic())
            self._refusals.forget(self._clock.monotonic())

    def _keep_house(self) -> None:
        """Open the ledger or prove that it works; then go on with what it says is unfinished."""
        if self._for_good:
            return
        try:
            if not self._ledger_open:
                self._open_ledger()
            self._ledger.prune(self._clock.monotonic())
            if self._closed and not self._for_good:
                self._closed = ""
                self._clerk.load()
                self._refusals.load()
                for record in self._ledger.live():
                    if record.id not in self._running:
                        self._start(record)
                self._outbox.wake()
        except Unavailable as error:
            self._lose_ledger(error)

    def _open_ledger(self) -> None:
        # Seconds since 1970: higher than any number that a ledger before this one can have given out.
        word = self._ledger.open(first_episode=int(self._clock.wall().timestamp()))
        self._ledger_open = True
        if word:
            self._for_good, self._closed = True, f"{word}; nobody is evicted until the evictor starts again"
            log.error("ledger.broken", why=self._closed)

    def _lose_ledger(self, error: Unavailable) -> None:
        """Fail closed: no eviction begins or goes on until the ledger can be written again."""
        if self._closed != str(error):
            log.error("ledger.unavailable", why=str(error))
        self._closed, self._ledger_open = str(error), False

    def _evidence(self, plugin: str) -> Evidence:
        return self._panel.evidence(plugin, self._clock.monotonic(), self._settings.rules)

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
