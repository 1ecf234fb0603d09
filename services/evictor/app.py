"""The evictor: every sample is judged at once, a confirmed pressure evicts at most one pod, every step is written.

Without a working ledger nobody is evicted, and health says so.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from services.evictor.announcer import Announcer
from services.evictor.backoff import Backoff
from services.evictor.clerk import Case, Clerk
from services.evictor.core.choice import Choice, Ready, choose
from services.evictor.core.guards import Surroundings
from services.evictor.core.plugin import Candidate, View
from services.evictor.executor import Evidence, Executor, Patience
from services.evictor.ledger import Ledger
from services.evictor.outbox import Outbox
from services.evictor.panel import Panel
from services.evictor.settings import read
from shared import telemetry
from shared.contracts.allocation import Allocation
from shared.contracts.pod import SEED_RECLAIMED_CPU, SEED_RECLAIMED_MEMORY
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeSample
from shared.core.intents import Bucket, IntentRecord
from shared.errors import Conflict, Unavailable
from shared.ports import EvictionActuator
from shared.settings import merge
from shared.wire import Newest, Wire

log = structlog.get_logger()

HOUSEKEEPING_S = 10.0
USABLE = ("applied", "partial")
"""Allocations that say what is offered because advice said so. When advice has run out the offer falls by itself
("held", "floor"), and a silent advisor must evict nobody (DESIGN section 7 rule 1)."""


class EvictorApp:
    """Maps samples to evictions."""

    def __init__(
        self,
        wire: Wire,
        ledger: Ledger,
        actuator: EvictionActuator,
        section: Mapping[str, Any],
        paused: Callable[[], str] = lambda: "",
    ) -> None:
        self._wire, self._clock, self._ledger, self._static = wire, wire.clock, ledger, section
        self._paused = paused
        """Why nobody may be evicted on this node now; "" when evictions go on."""
        self._settings, plugins = read(section)
        self._panel = Panel(plugins)
        self._outbox = Outbox(ledger, wire.bus, self._clock)
        self._clerk = Clerk(ledger, wire, written=self._outbox.wake)
        announcer = Announcer(ledger, wire.bus, self._clock)
        self._executor = Executor(self._clerk, announcer, actuator, self._clock, evidence=self._evidence, paused=paused)
        self._backoff = Backoff()
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
        try:
            recent, waiting = self._ledger.recent(20), self._ledger.waiting_count()
        except Unavailable as error:
            recent, waiting = [{"error": str(error)}], None
        return {
            "plugins": self._panel.state(self._clock.monotonic(), self._settings.rules, self._clerk, self._busy()),
            "conditions": [
                *self._panel.conditions(self._settings.rules, self._clerk, self._closed),
                *([{"type": "EvictionsPaused", "message": why}] if (why := self._paused()) else []),
            ],
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
        self._ledger.close()

    def _judge(self, sample: NodeSample) -> None:
        """One round: look, confirm, choose, begin."""
        now_s = self._clock.monotonic()
        with telemetry.span("evictor.judge", {"sample": sample.seq}):
            findings = self._panel.look(
                View(now_s, sample, self._offered(), allocation=self._allocation()), self._settings.rules
            )
            try:
                self._panel.note_relief(findings, self._clerk)
                if not self._closed and not self._paused():
                    self._act(sample, now_s)
            except Unavailable as error:
                self._lose_ledger(error)
        telemetry.STEP_SECONDS.labels("evictor").observe(self._clock.monotonic() - now_s)

    def _act(self, sample: NodeSample, now_s: float) -> None:
        ready = self._panel.ready(now_s, self._settings.rules, self._clerk, self._busy())
        around = Surroundings(
            self._settings.protected_namespaces,
            {record.pod.uid for record in self._running.values()},
            self._backoff.waiting(now_s),
        )
        for choice in choose(ready, around):
            self._panel.note_choice(choice)
            if choice.victim is not None:
                self._begin(choice, choice.victim, ready[choice.plugin], sample, now_s)

    def _begin(self, choice: Choice, victim: Candidate, ready: Ready, sample: NodeSample, now_s: float) -> None:
        per_minute = self._settings.evictions_per_minute
        bucket = self._ledger.bucket() or Bucket(per_minute, now_s)
        left = bucket.take(now_s, capacity=max(1.0, per_minute), per_s=per_minute / 60)
        if left is None:
            log.warning("eviction.rate_limited", plugin=choice.plugin, per_minute=per_minute)
            return
        settings, allocation = self._panel.settings_of(choice.plugin), self._allocation()
        case = Case(
            plugin=choice.plugin,
            mode=settings.mode,
            pressure=ready.pressure,
            victim=victim,
            grace_s=settings.grace_period_s if settings.grace_period_s >= 0 else victim.pod.grace_s,
            deadline_s=self._settings.intent_deadline_s,
            based_on=(sample.ref, *((allocation.ref,) if allocation is not None else ())),
            seen_at_s=now_s,
        )
        try:
            record = self._clerk.begin(case, left)
        except Conflict as error:
            log.warning("eviction.already_under_way", why=str(error))
            return
        self._start(record)

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

    def _offered(self) -> dict[str, int] | None:
        """What is offered to reclaimed pods, named as the tutorial names it; None: missing, stale, or not by advice."""
        allocation = self._allocation()
        if allocation is None or allocation.status not in USABLE:
            return None
        return {
            SEED_RECLAIMED_CPU: allocation.reclaimed_cpu_millis,
            SEED_RECLAIMED_MEMORY: allocation.reclaimed_memory_bytes,
        }

    def _allocation(self) -> Allocation | None:
        return self._allocations.within(self._settings.max_allocation_age_s) if self._allocations is not None else None

    def _busy(self) -> set[str]:
        """Plugins with an eviction under way."""
        return {record.intent.plugin for record in self._running.values()}
