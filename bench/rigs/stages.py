"""The chain of one reaction, stage by stage: each message of the node with the moment at which it was heard."""

import itertools
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.rigs.report import Row, p50_p99
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.ports import Received
from sublet.ask import target

KINDS = {"sample": "sample", "advice": "advice", "alloc": "alloc"}
STAGES = (
    "tenant wakes to sample on the bus",
    "sample to advice",
    "advice to changed cpuset (place, write)",
    "changed cpuset to allocation (read back)",
)


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, by the name that later ones give it, and when it was heard (monotonic seconds)."""

    at_s: float
    kind: str
    ref: str
    based_on: Sequence[str]


@dataclass
class StageListener:
    """Everything heard so far."""

    heard: list[Heard] = field(default_factory=list)

    def record(self, received: Received) -> None:
        """Take down a message of the chain."""
        now_s = time.monotonic()
        kind = KINDS.get(received.subject.split(".")[3])
        if kind is not None:
            body: Mapping[str, Any] = json.loads(received.data)
            self.heard.append(Heard(now_s, kind, f"{kind}/{body['seq']}", body.get("based_on", ())))

    def stages_s(self, woke_s: float, changed_s: float) -> list[float] | None:
        """How long each stage of the reaction took that changed the cpuset at that moment; None: not all was heard."""
        alloc = next((m for m in self.heard if m.kind == "alloc" and m.at_s >= changed_s), None)
        if alloc is None:
            return None
        by_ref = {message.ref: message for message in self.heard}
        sample, advice = (
            next((by_ref[ref] for ref in alloc.based_on if ref.startswith(f"{kind}/") and ref in by_ref), None)
            for kind in ("sample", "advice")
        )
        if sample is None or advice is None:
            return None
        moments = [woke_s, sample.at_s, advice.at_s, changed_s, alloc.at_s]
        return [after - before for before, after in itertools.pairwise(moments)]


@asynccontextmanager
async def listening() -> AsyncIterator[StageListener]:
    """Hear the node's messages for as long as the block runs."""
    listener = StageListener()
    bus = await connect(target().nats_url, name="bench", connect_timeout_s=10.0, clock=SystemClock())
    subscription = await bus.subscribe("sublet.node.v1.>", listener.record)
    try:
        yield listener
    finally:
        await subscription.stop()
        await bus.drain()


def rows(chains: Sequence[Sequence[float]]) -> list[Row]:
    """A line a stage."""
    return [
        Row(f"  {name}, p50 / p99", p50_p99([chain[place] for chain in chains]), len(chains), "")
        for place, name in enumerate(STAGES)
    ]
