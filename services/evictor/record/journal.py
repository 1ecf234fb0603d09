"""Journals every step of an eviction: the change and its event, in one transaction of the ledger."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from services.evictor.core.events import message_of
from services.evictor.core.plugin import Candidate, Pressure
from services.evictor.ports import EvictionLedger
from shared import telemetry
from shared.contracts.eviction import EvictionEvent, EvictionFacts, EvictionIntent
from shared.contracts.ids import intent_id
from shared.contracts.mode import Mode
from shared.core.evictions.intents import PHASE_OF_STEP, Call, IntentRecord, Outgoing, Record, Spent, Step, TokenBucket
from shared.evictions.messages import MAX_DETAIL, event_message, intent_message
from shared.wire import Wire

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class EvictionRequest:
    """The decision to evict one pod: what a new intent is made of."""

    plugin: str
    mode: Mode
    pressure: Pressure
    victim: Candidate
    grace_s: float
    deadline_s: float
    based_on: tuple[str, ...]
    seen_at_s: float


class IntentJournal:
    """Writes intents ahead of their eviction, and holds each plugin's record and what budgets count."""

    def __init__(self, ledger: EvictionLedger, wire: Wire, *, written: Callable[[], None]) -> None:
        self._ledger, self._wire, self._written = ledger, wire, written
        self.records: dict[str, Record] = {}
        self.spent: tuple[Spent, ...] = ()
        """Evictions as the ledger has them for the budgets."""

    def load(self) -> None:
        """Read the plugins' records, and what budgets count."""
        self.records = dict(self._ledger.records())
        self.spent = tuple(self._ledger.spent())

    def record_of(self, plugin: str) -> Record:
        """One plugin's record."""
        return self.records.get(plugin, Record())

    def write_record(self, plugin: str, record: Record) -> None:
        """Write a plugin's record if it has changed."""
        if record != self.record_of(plugin):
            self._ledger.keep_record(plugin, record)
            self.records[plugin] = record

    def begin(self, request: EvictionRequest, bucket: TokenBucket) -> IntentRecord:
        """Write the intent before anything else, with the event that announces it.

        Raises:
            Conflict: the pod has a live intent.
        """
        # From the ledger, so that an id is never given twice, not even by a life that has forgotten the one before.
        pod, episode = request.victim.pod, self._ledger.next_episode()
        intent = self._wire.stamp(
            EvictionIntent,
            based_on=request.based_on,
            intent_id=intent_id(self._wire.node, pod.uid, request.plugin, episode),
            namespace=pod.namespace,
            pod=pod.name,
            pod_uid=pod.uid,
            qos=pod.qos,
            plugin=request.plugin,
            scope=request.pressure.scope,
            observed=request.pressure.observed,
            threshold=request.pressure.threshold,
            grace_s=request.grace_s,
            mode=request.mode,
            episode=episode,
            deadline_s=request.deadline_s,
            why=(request.pressure.why, request.victim.why),
        )
        record = IntentRecord(intent, pod, request.pressure.hard, request.seen_at_s)
        # Held: the announcer sends it, with the sequence that it has read; the outbox only what the announcer releases.
        announcement = intent_message(intent)
        self._ledger.begin(record, bucket, [announcement, self._event(record)])
        # Read back, not added up: what budgets count is what a restart would count.
        self.spent = tuple(self._ledger.spent())
        self._report(record)
        return record

    def move(self, record: IntentRecord, step: Step, *, detail: str = "", calls: tuple[Call, ...] = ()) -> IntentRecord:
        """Write the next step of an intent, and return its new record."""
        now_s = self._wire.clock.monotonic()
        record = record.follow(step, detail=detail, now_s=now_s)
        # "requested" has no event, because nothing visible has happened to the pod yet.
        outgoing = (self._event(record),) if step in PHASE_OF_STEP else ()
        before = self.record_of(record.intent.plugin)
        # In the same transaction as the step: cooling must not be forgotten by a crash between the two.
        after = before.after_eviction(now_s, record.opened_at_s) if _counts(record) else None
        self._ledger.advance(record, outgoing, calls=calls, now_s=now_s, plugin_record=after)
        if after is not None:
            self.records[record.intent.plugin] = after
        self.spent = tuple(self._ledger.spent())
        self._report(record)
        return record

    def _event(self, record: IntentRecord) -> Outgoing:
        intent, phase = record.intent, PHASE_OF_STEP[record.step]
        detail = record.detail[:MAX_DETAIL]
        event = self._wire.stamp(
            EvictionEvent,
            based_on=(intent.ref,),
            phase=phase,
            attempt=max(1, record.attempts),
            message=message_of(phase, plugin=intent.plugin, scope=intent.scope, detail=detail),
            detail=detail,
            **{name: getattr(intent, name) for name in _FACTS},
        )
        return event_message(event)

    def _report(self, record: IntentRecord) -> None:
        intent = record.intent
        if record.step in PHASE_OF_STEP:
            telemetry.EVICTIONS.labels(intent.plugin, PHASE_OF_STEP[record.step]).inc()
        elapsed_s = self._wire.clock.monotonic() - record.opened_at_s
        # After a reboot the monotonic clock restarts, and a span across it is unknown.
        if elapsed_s >= 0:
            telemetry.EVICTION_SECONDS.labels(record.step).observe(elapsed_s)
        telemetry.note({"intent_id": record.id, "attempt": record.attempts}, event=f"eviction.{record.step}")
        log.info(
            f"eviction.{record.step}",
            intent_id=record.id,
            pod=record.pod.key,
            pod_uid=record.pod.uid,
            plugin=intent.plugin,
            scope=intent.scope,
            attempt=record.attempts,
            detail=record.detail,
        )
        self._written()


def _counts(record: IntentRecord) -> bool:
    """Whether this end starts the plugin's cooling and counts as a try; a dry run is paced like a real eviction."""
    return record.step in ("succeeded", "failed") or (record.final and record.intent.mode == "dry-run")


_FACTS = tuple(name for name in EvictionFacts.model_fields if name not in EvictionFacts.__base__.model_fields)  # type: ignore[union-attr]
