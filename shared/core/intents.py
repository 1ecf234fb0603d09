"""The life of one eviction as the ledger keeps it: steps, what may follow what, the bucket that bounds the rate.

Moments are readings of the node's monotonic clock, which starts anew with the machine, so every span here is one that
has certainly passed, never one that only may have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from shared.contracts.eviction import EvictionIntent, Phase
from shared.contracts.pod import Pod

Step = Literal["intended", "requested", "accepted", "succeeded", "failed", "refused", "cancelled"]
"""intended: written, nothing done. requested: a call is about to be made or was made. accepted: the pod is on its way.
The other four are final."""

STEPS: tuple[Step, ...] = get_args(Step)
FINAL_STEPS: frozenset[Step] = frozenset({"succeeded", "failed", "refused", "cancelled"})

_NEXT: dict[Step, frozenset[Step]] = {
    "intended": frozenset({"requested", "refused", "cancelled", "failed"}),
    "requested": frozenset({"requested", "accepted", "refused", "cancelled", "failed"}),
    "accepted": frozenset({"succeeded", "failed"}),
}

PHASE_OF_STEP: dict[Step, Phase] = {
    "intended": "intended",
    "accepted": "created",
    "succeeded": "succeeded",
    "failed": "failed",
    "refused": "refused",
    "cancelled": "cancelled",
}
"""The event that tells of a step; `requested` is nobody's business but the ledger's."""


def passed_s(since_s: float, now_s: float) -> float:
    """Seconds that have certainly passed between two readings of the monotonic clock.

    A reading below an earlier one means that the machine was started anew in between; then at least its whole uptime
    has passed. Across a restart that cannot be seen this way the difference is still a lower bound.
    """
    return now_s - since_s if now_s >= since_s else max(0.0, now_s)


@dataclass(frozen=True, slots=True)
class IntentRecord:
    """One eviction in the ledger."""

    intent: EvictionIntent
    pod: Pod
    hard: bool
    """Whether the pressure is hard: such an intent is carried out even when the bus is away."""
    opened_at_s: float
    step: Step = "intended"
    attempts: int = 0
    """Real calls so far; each was written here before it was made."""
    accepted_at_s: float | None = None
    detail: str = ""

    @property
    def id(self) -> str:
        """The intent's id."""
        return self.intent.intent_id

    @property
    def final(self) -> bool:
        """Whether nothing more will happen."""
        return self.step in FINAL_STEPS

    def follow(self, step: Step, *, detail: str = "", now_s: float | None = None) -> "IntentRecord":
        """The record one step further.

        Raises:
            ValueError: that step cannot follow this one.
        """
        if step not in _NEXT.get(self.step, ()):
            raise ValueError(f"intent {self.id}: {step!r} cannot follow {self.step!r}")
        return replace(
            self,
            step=step,
            detail=detail,
            attempts=self.attempts + (step == "requested"),
            accepted_at_s=now_s if step == "accepted" else self.accepted_at_s,
        )

    def expired(self, now_s: float) -> bool:
        """Whether the time to begin is over: the deadline has passed, or the machine was started anew since."""
        return now_s < self.opened_at_s or now_s - self.opened_at_s > self.intent.deadline_s


CallKind = Literal["dry-run", "evict", "lookup"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call to whoever evicts, and what became of it."""

    what: CallKind
    outcome: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that the ledger keeps until the stream has acknowledged it."""

    msg_id: str
    subject: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    """Not yet to be sent: an intent that its own writer is still announcing."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket: `tokens` were there at `at_s`."""

    tokens: float
    at_s: float

    def take(self, now_s: float, *, capacity: float, per_s: float) -> "Bucket | None":
        """The bucket with one token less, or None when there is none."""
        tokens = min(capacity, self.tokens + passed_s(self.at_s, now_s) * per_s)
        return Bucket(tokens - 1, now_s) if tokens >= 1 else None


@dataclass(frozen=True, slots=True)
class Record:
    """What one plugin's evictions have led to so far."""

    without_relief: int = 0
    """Evictions since the pressure was last gone."""
    last_at_s: float | None = None
    """When the last one ended."""

    def after_eviction(self, now_s: float) -> "Record":
        """One more eviction has ended."""
        return Record(self.without_relief + 1, now_s)

    def after_relief(self) -> "Record":
        """The pressure has gone."""
        return replace(self, without_relief=0)
