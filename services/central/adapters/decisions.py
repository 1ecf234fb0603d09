"""`BusDecisions` puts decisions into their stream, in the background, as many as it takes."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import structlog

from services.central.core.said_decisions import SaidDecisions, shortened
from shared import telemetry
from shared.contracts.bus.subjects import MAX_FACT_BYTES, decision_subject
from shared.contracts.cluster.decision import Decided, Decision
from shared.core.evictions.intents import TokenBucket
from shared.core.log_limit import LogLimit
from shared.errors import SubletError
from shared.ports import DurableMessage, ObjectMirror
from shared.wire import Wire, message_id

log = structlog.get_logger()

PER_S, BURST = 50.0, 2000
"""Rate of one process: a burst is a thousand pods at once, each with an answer of two areas."""
BUDGET_S = 5.0
"""Seconds to store one message; the next pass repeats it."""
HEADER_BYTES = 512


class BusDecisions:
    """The `DecisionLog` over the stream of decisions. Somebody has to `run` it: central does while it leads."""

    mirrors: Sequence[ObjectMirror[Any]] = ()
    failure = ""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._clock = wire, wire.clock
        self._said = SaidDecisions()
        self._bucket = TokenBucket(BURST, wire.clock.monotonic())
        self._waiting: deque[Decided] = deque()
        self._some = asyncio.Event()
        self._log_limit = LogLimit(quiet_s=60.0)
        self._outcomes = Counter[str]()

    def say(self, decided: Decided) -> None:
        """See the port."""
        now_s = self._clock.monotonic()
        if not self._said.news(decided, now_s):
            return
        rest = self._bucket.spend(now_s, capacity=BURST, per_s=PER_S)
        if rest is None or len(self._waiting) >= BURST:
            self._count(decided, "cut")
            return
        self._bucket = rest
        self._said.said(decided, now_s)
        self._waiting.append(decided)
        self._some.set()

    async def run(self) -> None:
        """Store decisions one after the other, until cancelled."""
        while True:
            await self._some.wait()
            while self._waiting:
                await self._store(self._waiting.popleft())
            self._some.clear()

    async def _store(self, decided: Decided) -> None:
        subject, payload, seq = self._message(decided)
        fact = message_id(f"{self._wire.boot_id}/decision/{seq}")
        try:
            await self._wire.bus.publish_durable(DurableMessage(subject, payload, fact), budget_s=BUDGET_S)
        except SubletError as error:
            self._said.lost(decided)
            self._count(decided, "lost")
            held_back = self._log_limit.may_say("lost", self._clock.monotonic())
            if held_back is not None:
                log.warning("decision.not_stored", about=str(decided.about), why=str(error), held_back=held_back)
        else:
            self._count(decided, "said")

    def _message(self, decided: Decided) -> tuple[str, bytes, int]:
        shown: Decided | None = decided
        while shown is not None:
            decided, shown = shown, None
            decision = self._wire.stamp(Decision, **{name: getattr(decided, name) for name in Decided.model_fields})
            payload = decision.encode()
            if len(payload) > MAX_FACT_BYTES - HEADER_BYTES:
                shown = shortened(decided)
        return decision_subject(decided.area, decided.about), payload, decision.seq

    def state(self) -> dict[str, Any]:
        """Return how many decisions were published, dropped in a flood, or lost with the bus."""
        return {"waiting": len(self._waiting), **self._outcomes}

    def _count(self, decided: Decided, outcome: str) -> None:
        self._outcomes[outcome] += 1
        telemetry.DECISIONS.labels(decided.area, outcome).inc()
