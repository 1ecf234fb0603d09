"""An intent goes through the steps of one eviction; its bucket bounds how many begin.

Times are readings of the node's monotonic clock, which restarts with the machine, so every span here is one that has
certainly passed, never one that only may have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.eviction import EvictionIntent
from shared.contracts.eviction_phases import Phase
from shared.contracts.mode import Mode
from shared.contracts.pod import Pod

Step = Literal["intended", "requested", "accepted", "succeeded", "failed", "refused", "cancelled"]
"""intended: written, nothing done. requested: a call is about to be made or was made. accepted: the pod is on its way.
The other four are final."""

STEPS: tuple[Step, ...] = get_args(Step)
FINAL_STEPS: frozenset[Step] = frozenset({"succeeded", "failed", "refused", "cancelled"})

MAX_LEDGER_BYTES = 256 << 20
"""Default size of the ledger: sent messages are soon removed, so it grows only while the bus is away."""

_NEXT: dict[Step, frozenset[Step]] = {
    "intended": frozenset({"requested", "refused", "cancelled", "failed"}),
    # "requested" follows itself: a call whose outcome is not known is made again, and each is written down before.
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
"""The event of a step; `requested` has none, because only the ledger needs it."""


def passed_s(since_s: float, now_s: float) -> float:
    """Return the seconds that have certainly passed between two readings of the monotonic clock.

    A reading below an earlier one means that the machine was restarted in between; then at least its whole uptime has
    passed. Across a restart that cannot be detected this way, the difference is still a lower bound.
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

    @property
    def spends(self) -> bool:
        """Whether it uses up budgets: it evicts, may still, or may have. A dry run always uses up its own."""
        # An intent that was refused after a call may have evicted all the same.
        return not self.final or self.attempts > 0 or self.intent.mode == "dry-run"

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
        """Return whether the time to begin is over: the deadline has passed, or the machine was restarted since."""
        # A clock below the opening time has restarted: decisions from before a reboot are not carried out after it.
        return now_s < self.opened_at_s or now_s - self.opened_at_s > self.intent.deadline_s


CallKind = Literal["dry-run", "evict", "lookup"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the actuator, and what became of it."""

    what: CallKind
    outcome: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that the ledger keeps until the stream has acknowledged it."""

    fact_id: str
    """An event's ce-id or an intent's id: the ledger's key, and known to others."""
    subject: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    """Not yet to be sent: an intent that its own writer is still announcing."""

    @property
    def msg_id(self) -> str:
        """The id by which the stream drops repetitions; one that was written before ids had a random part is the
        fact's."""
        return self.headers.get(MSG_ID, self.fact_id)


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A token bucket: `tokens` were there at `at_s`."""

    tokens: float
    at_s: float

    def spend(self, now_s: float, *, capacity: float, per_s: float) -> "TokenBucket | None":
        """Return the bucket with one token less, or None if it is empty."""
        # By the time that has certainly passed: a reboot must not fill the bucket.
        tokens = min(capacity, self.tokens + passed_s(self.at_s, now_s) * per_s)
        return TokenBucket(tokens - 1, now_s) if tokens >= 1 else None

    def wait_s(self, now_s: float, *, per_s: float) -> float:
        """Return the seconds until the next token."""
        return max(0.0, (1 - self.tokens) / per_s - passed_s(self.at_s, now_s))


@dataclass(frozen=True, slots=True)
class Record:
    """What one plugin's evictions have led to so far."""

    without_relief: int = 0
    """Evictions since the pressure was last gone."""
    last_at_s: float | None = None
    """When the last one ended."""

    def after_eviction(self, now_s: float, opened_at_s: float | None = None) -> "Record":
        """One more eviction has ended. Those of one round count as one: whether they helped shows when all are gone.

        A plugin's next round opens after all of the last one have ended, so what was opened before the last end
        belongs to the same round.
        """
        together = opened_at_s is not None and self.last_at_s is not None and opened_at_s < self.last_at_s <= now_s
        return Record(self.without_relief + (not together), now_s)

    def after_relief(self) -> "Record":
        """The pressure has gone."""
        return replace(self, without_relief=0)


@dataclass(frozen=True, slots=True)
class Spent:
    """One eviction that budgets count."""

    mode: Mode
    namespace: str
    owner: str | None = None
    """namespace/Kind/name of the pod's owner; None: it had none."""
    at_s: float | None = None
    """When it had certainly been carried out; None: it may still be."""

    def age_s(self, now_s: float) -> float:
        """Seconds that have certainly passed since; 0 while it is not over."""
        return 0.0 if self.at_s is None else passed_s(self.at_s, now_s)


@dataclass(frozen=True, slots=True)
class KeptRefusal:
    """Why a pod, or with an empty `uid` any pod, was not evicted for a plugin: the guard that refused."""

    pod: str
    """namespace/name; "" where the guard held the plugin as a whole."""
    uid: str
    plugin: str
    guard: str
    why: str
    """A sentence with the numbers of the newest time."""
    count: int
    """Samples at which it refused."""
    first_at_s: float
    last_at_s: float

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the identity of the refusal."""
        return self.uid, self.plugin, self.guard

    def again(self, why: str, now_s: float) -> "KeptRefusal":
        """The same guard once more; the newest numbers win."""
        return replace(self, why=why, count=self.count + 1, last_at_s=now_s)
