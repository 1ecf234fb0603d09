"""Carries out one intent: announce, look up, rehearse, evict, watch. Every step is written before the next is made.

Started again from any step it ends the same way: an unknown outcome is looked up before anything is repeated, and every
call carries the pod's UID, so that it never reaches a successor of the same name
(docs/facts/kubernetes.md#eviction-measured).
"""

from collections.abc import Callable
from dataclasses import dataclass

from services.evictor.act.announcer import Announcer
from services.evictor.core import rulings
from services.evictor.core.arbiter.confirmation import Evidence
from services.evictor.core.events import met_text, timeout_text
from services.evictor.record.journal import IntentJournal
from shared import telemetry
from shared.core.backoff import delay_s
from shared.core.evictions.intents import Call, IntentRecord, passed_s
from shared.core.evictions.rulings import Ruling, while_going
from shared.evictions.procedure import EvictionOrder, EvictionProcedure
from shared.ports import Clock, EvictionActuator

RETRY_BASE_S, RETRY_CAP_S = 0.25, 5.0
WATCH_BASE_S, WATCH_CAP_S = 0.05, 2.0
SHORTEST_WATCH_S = 10.0
GRACE_FACTOR = 1.5


def watch_time_s(grace_s: float) -> float:
    """How long a pod may take to go (docs/facts/katalyst-eviction.md#killing-a-pod)."""
    return max(SHORTEST_WATCH_S, GRACE_FACTOR * grace_s)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Time limits of one intent's calls, in seconds."""

    announce_s: float
    call_timeout_s: float


@dataclass(frozen=True, slots=True)
class LastChecks:
    """What is checked again right before a call, because it may have changed since the decision."""

    evidence: Callable[[str], Evidence]
    """Return what the newest sample says about a plugin's pressure; an old decision alone evicts no pod."""
    paused: Callable[[], str] = lambda: ""
    """Return why no pod may be evicted now; "" if evictions are allowed."""
    observes: Callable[[], bool] = lambda: False
    """Return whether the node only observes now: earlier decisions are called off, and rehearsals continue."""


@dataclass(frozen=True, slots=True)
class _ChecksOfIntent:
    """The checks of one intent, by its pod, its pressure, the pause and its deadline."""

    record: IntentRecord
    checks: LastChecks
    clock: Clock
    procedure: EvictionProcedure
    lookup_s: float

    async def before_dry_run(self) -> Ruling | None:
        # The evidence after the lookup, which may have taken seconds: what counts is the newest sample at the call.
        standing = await self.procedure.lookup(self.record.pod, within_s=self.lookup_s)
        evidence = self.checks.evidence(self.record.intent.plugin)
        return rulings.before_dry_run(standing, self._called_off(), evidence)

    def after_dry_run(self, call: Call) -> Ruling | None:
        return rulings.after_dry_run(self.record.intent, call, expired=self.record.expired(self.clock.monotonic()))

    def before_call(self) -> Ruling | None:
        # Once more right before the call: `sublet pause` must stop what has been decided already.
        return self._called_off()

    def _called_off(self) -> Ruling | None:
        return rulings.called_off(self.record.intent, self.checks.paused(), observes=self.checks.observes())


class Executor:
    """Carries out any number of intents at the same time, each in its own task."""

    def __init__(
        self,
        journal: IntentJournal,
        announcer: Announcer,
        actuator: EvictionActuator,
        clock: Clock,
        checks: LastChecks,
    ) -> None:
        self._journal, self._announcer, self._clock, self._checks = journal, announcer, clock, checks
        self._procedure = EvictionProcedure(actuator, "node")

    async def carry_out(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Bring an intent from its step in the ledger to its end."""
        resumed = record.step != "intended"
        # Begun by a round, the task is within its span; taken up after a restart, the intent's message names it.
        parent = self._announcer.traceparent(record) if resumed and telemetry.tracing() else ""
        with telemetry.span("evictor.carry_out", _span_attributes(record), parent=parent):
            if record.step == "intended":
                record = await self._announce(record, limits)
            # Still intended after a crash as well: until the dry run has passed nothing is done, so
            # all of it may be repeated.
            if record.step == "intended":
                record = await self._rehearse(record, limits)
            elif record.step == "requested":  # a call may have been made before a restart
                record = await self._settle(record, limits)
            # `requested` is on the disk before the call is made, so that a call without an answer is always looked up.
            while record.step == "requested":
                record = await self._request(record, limits)
            if record.step == "accepted":
                if resumed and await self._procedure.lookup(record.pod, within_s=limits.call_timeout_s) != "gone":
                    # On a host the ending dies with its process.
                    await self._procedure.repeat(_order(record), within_s=limits.call_timeout_s)
                record = await self._watch(record, limits)
            telemetry.note({"outcome": record.step, "detail": record.detail})
            return record

    async def _announce(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        # Right after a long absence the pressure behind the intent is not the current one.
        if record.expired(self._clock.monotonic()):
            self._announcer.discard(record)
            return self._written(record, rulings.too_late(record.intent))
        announced = await self._announcer.announce(record, limits.announce_s)
        if announced == "taken":
            return self._written(record, Ruling("cancelled", "central has opened an intent for this pod"))
        if announced == "away" and not record.hard:
            return self._written(record, Ruling("cancelled", "the bus is away and the pressure is soft"))
        return record

    async def _rehearse(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Look at pod and pressure again, and make the call as a dry run; until this ends nothing is done."""
        tries = 0
        while not record.expired(self._clock.monotonic()):
            ruling = await self._procedure.rehearse(
                _order(record), self._checks_of(record, limits), within_s=limits.call_timeout_s
            )
            if ruling.step is not None:
                return self._written(record, ruling)
            await self._pause(record, tries)
            tries += 1
        return self._written(record, rulings.too_late(record.intent))

    async def _request(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Make the call that `requested` has announced."""
        ruling = await self._procedure.request(
            _order(record),
            self._checks_of(record, limits),
            called_before=record.attempts > 1,
            within_s=limits.call_timeout_s,
        )
        return await self._settle(record, limits) if ruling.step is None else self._written(record, ruling)

    async def _settle(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Find out what an earlier call has done; only a pod that still runs is evicted again."""
        ruling, tries = Ruling(), 0
        while ruling.step is None:
            # First a pause: an API server that has just timed out needs one, and a pod some time to show that it ends.
            await self._pause(record, tries)
            tries += 1
            asked_s = self._clock.monotonic()
            standing = await self._procedure.lookup(record.pod, within_s=limits.call_timeout_s)
            expired = record.expired(asked_s)
            # The deadline has passed during the lookup, as in a stall: what was true before it is looked up again.
            if standing == "running" and record.expired(self._clock.monotonic()) and not expired:
                continue
            ruling = rulings.while_settling(standing, self._checks.evidence(record.intent.plugin), expired=expired)
        return self._written(record, ruling)

    async def _watch(self, record: IntentRecord, limits: CallLimits) -> IntentRecord:
        """Wait until this UID is gone: an accepted call promises an eviction, only a missing pod proves it."""
        # Counted from the acceptance in the ledger, so a restart does not restart the pod's time.
        since_s = self._clock.monotonic() if record.accepted_at_s is None else record.accepted_at_s
        time_s, lookups = watch_time_s(record.intent.grace_s), 0
        while True:
            # The time at the question: a stall ages the answer, and the pod may have gone meanwhile.
            waited_s = passed_s(since_s, self._clock.monotonic())
            standing = await self._procedure.lookup(record.pod, within_s=limits.call_timeout_s)
            step = while_going(standing, waited_s, time_s)
            if step is not None:
                detail = timeout_text(time_s) if step == "failed" else ""
                return self._written(record, Ruling(step, detail))
            await self._clock.sleep(delay_s(lookups, base_s=WATCH_BASE_S, cap_s=WATCH_CAP_S, roll=1.0))
            lookups += 1

    def _checks_of(self, record: IntentRecord, limits: CallLimits) -> _ChecksOfIntent:
        return _ChecksOfIntent(record, self._checks, self._clock, self._procedure, limits.call_timeout_s)

    def _written(self, record: IntentRecord, ruling: Ruling) -> IntentRecord:
        """The record after a ruling with a step, as the journal has it."""
        if ruling.step is None:
            return record
        return self._journal.move(record, ruling.step, detail=ruling.detail, calls=ruling.calls)

    async def _pause(self, record: IntentRecord, tries: int) -> None:
        """Wait before the next attempt. The intent's id spreads the waits, so that many nodes do not call one API
        server at once."""
        # By the id and not by chance: the same intent waits the same, so that a run can be repeated.
        roll = int(record.id[:8], 16) / 0xFFFFFFFF
        await self._clock.sleep(delay_s(tries, base_s=RETRY_BASE_S, cap_s=RETRY_CAP_S, roll=roll))


def _span_attributes(record: IntentRecord) -> telemetry.Attributes:
    """What joins the span with the log, the events and the pod."""
    intent = record.intent
    return {
        "intent_id": record.id,
        "plugin": intent.plugin,
        "mode": intent.mode,
        "k8s.namespace.name": intent.namespace,
        "k8s.pod.name": intent.pod,
        "k8s.pod.uid": intent.pod_uid,
    }


def _order(record: IntentRecord) -> EvictionOrder:
    intent = record.intent
    return EvictionOrder(record.pod, intent.grace_s, met_text(intent.plugin, intent.scope))
