"""Pure decisions of central: who was heard of and when, how each node stands, and whether anything may be done at all.

No action follows from this module alone. Silence on the bus is never death (DESIGN section 7 rule 2): the strongest
word for a silent node is "late", and a verdict on a lost node needs Kubernetes' evidence on top of it (the table in
notes/reliability.md section 3).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.contracts.readiness import Readiness
from shared.core.newest import NewestGate, Verdict

NodeState = Literal["ready", "unready", "late", "unknown"]
NODE_STATES: tuple[NodeState, ...] = ("ready", "unready", "late", "unknown")

Seconds = Annotated[float, Field(gt=0, le=86_400 * 7, allow_inf_nan=False)]


class Rules(BaseModel):
    """When a node counts as late, and when too much looks bad at once (notes/reliability.md section 3)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    late_s: Seconds = 30.0
    """A node silent for longer is late; three heartbeats of 10 s."""
    probe_max_age_s: Seconds = 15.0
    """Central trusts the bus while it heard its own probe within this time."""
    max_bad_ratio: Annotated[float, Field(ge=0, le=1)] = 0.2
    """Share of all nodes that may look bad before everything pauses."""
    sudden_window_s: Seconds = 60.0
    """Nodes that fell silent within this window are counted together."""
    sudden_nodes: Annotated[int, Field(ge=1)] = 3
    """More nodes than this (and than `sudden_ratio` of all) falling silent together have one cause: pause."""
    sudden_ratio: Annotated[float, Field(ge=0, le=1)] = 0.05
    """See `sudden_nodes`."""
    sudden_pause_s: Seconds = 900.0
    """Pause after such an event."""
    clean_s: Seconds = 300.0
    """A pause ends only after this long without its cause."""
    forget_s: Seconds = 86_400.0
    """A node silent for longer leaves the ledger; nothing is done to it."""


@dataclass(slots=True)
class Beat:
    """The newest heartbeat of one node, stamped with central's own monotonic clock."""

    heard_at_s: float
    ready: bool
    failing: tuple[str, ...]
    gate: NewestGate = field(default_factory=NewestGate)


Ledger = dict[str, Beat]
"""Every node heard of, by name. `fold` changes it in place: 10 000 nodes beat a thousand times a second."""


def fold(ledger: Ledger, readiness: Readiness, now_s: float) -> Verdict:
    """Take one heartbeat into the ledger; a replayed, stale or retired one changes nothing."""
    beat = ledger.get(readiness.node)
    gate = beat.gate if beat else NewestGate()
    verdict = gate.take(readiness.boot_id, readiness.seq)
    if verdict == "new":
        failing = tuple(f"{health.service}: {health.why}" for health in readiness.services if not health.ok)
        ledger[readiness.node] = Beat(now_s, readiness.ready, failing, gate)
    return verdict


def forget(ledger: Ledger, now_s: float, rules: Rules) -> None:
    """Drop nodes silent for so long that they are not part of the cluster any more."""
    for node in [node for node, beat in ledger.items() if now_s - beat.heard_at_s > rules.forget_s]:
        del ledger[node]


@dataclass(frozen=True, slots=True)
class Ears:
    """Whether central itself hears the bus: when its own probe last came back, and since when it always has.

    Time in which central was deaf is nobody's silence.
    """

    heard_at_s: float | None = None
    since_s: float | None = None

    def hear(self, now_s: float, rules: Rules) -> "Ears":
        """The probe came back; after a gap, listening starts anew."""
        return Ears(now_s, self.since_s if self.well(now_s, rules) else now_s)

    def well(self, now_s: float, rules: Rules) -> bool:
        """Whether the bus can be trusted now."""
        return self.heard_at_s is not None and now_s - self.heard_at_s <= rules.probe_max_age_s

    def restarted(self, now_s: float) -> "Ears":
        """Listening starts anew, as after a change of the rules."""
        return Ears(self.heard_at_s, now_s if self.since_s is not None else None)


@dataclass(frozen=True, slots=True)
class Standing:
    """How one node stands, and why in words."""

    state: NodeState
    why: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """Every node's standing, ascending by name, and whether all action has to wait.

    This is what Kubernetes' evidence will be laid beside; nothing in it is a reason to evict.
    """

    nodes: Mapping[str, Standing] = field(default_factory=dict)
    paused: tuple[str, ...] = ("central has just started",)
    """Why nothing may be done now; empty: no guard objects."""
    paused_until_s: float = 0.0

    def counts(self) -> dict[NodeState, int]:
        """Number of nodes in each state."""
        found = Counter(standing.state for standing in self.nodes.values())
        return {state: found[state] for state in NODE_STATES}


def assess(ledger: Ledger, ears: Ears, before: Assessment, now_s: float, rules: Rules) -> Assessment:
    """The standing of every node, and the guards over all of them."""
    deaf = _deaf(ears, now_s, rules)
    nodes = {node: _standing(ledger[node], deaf, ears, now_s, rules) for node in sorted(ledger)}
    if deaf:
        return Assessment(nodes, (deaf,), before.paused_until_s)
    reasons, hold_s = _guards(nodes, ledger, ears, now_s, rules)
    until_s = max(before.paused_until_s, now_s + hold_s)
    if not reasons and now_s < until_s:
        reasons = (f"a pause holds for another {until_s - now_s:.0f} s",)
    return Assessment(nodes, reasons, until_s)


def _deaf(ears: Ears, now_s: float, rules: Rules) -> str:
    """Why central cannot judge silence now; empty when it can."""
    if not ears.well(now_s, rules):
        return f"central did not hear its own probe within {rules.probe_max_age_s:g} s: the bus is suspect"
    listening_s = now_s - (ears.since_s if ears.since_s is not None else now_s)
    if listening_s < rules.late_s:
        return f"central has listened for less than {rules.late_s:g} s"
    return ""


def _standing(beat: Beat, deaf: str, ears: Ears, now_s: float, rules: Rules) -> Standing:
    if now_s - beat.heard_at_s <= rules.late_s:
        return Standing("ready", "") if beat.ready else Standing("unready", "; ".join(beat.failing) or "says so itself")
    if deaf:
        return Standing("unknown", deaf)
    silent_s = now_s - _silent_since(beat, ears)
    if silent_s <= rules.late_s:
        return Standing("unknown", f"not heard of since central listens ({silent_s:.0f} s)")
    return Standing("late", f"silent for {silent_s:.0f} s, at most {rules.late_s:g} s; silence alone is not death")


def _silent_since(beat: Beat, ears: Ears) -> float:
    return beat.heard_at_s if ears.since_s is None else max(beat.heard_at_s, ears.since_s)


def _guards(
    nodes: Mapping[str, Standing], ledger: Ledger, ears: Ears, now_s: float, rules: Rules
) -> tuple[tuple[str, ...], float]:
    """Which guards object, and for how many seconds from now at least; both empty while all is calm."""
    reasons: list[str] = []
    hold_s = 0.0
    total = len(nodes)
    bad = sum(standing.state != "ready" for standing in nodes.values())
    # No healthy peer, no comparison: then it may as well be central or the bus that is ill.
    allowed = 0 if bad == total else max(1, int(rules.max_bad_ratio * total))
    if bad > allowed:
        reasons.append(f"{bad} of {total} nodes look bad, at most {allowed} may")
        hold_s = rules.clean_s
    sudden = sum(
        standing.state == "late" and now_s - _silent_since(ledger[node], ears) <= rules.late_s + rules.sudden_window_s
        for node, standing in nodes.items()
    )
    limit = max(rules.sudden_nodes, int(rules.sudden_ratio * total))
    if sudden > limit:
        reasons.append(f"{sudden} nodes fell silent within {rules.sudden_window_s:g} s, more than {limit}: one cause")
        hold_s = max(hold_s, rules.sudden_pause_s)
    return tuple(reasons), hold_s
