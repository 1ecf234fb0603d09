"""The ledger of heartbeats: when each node was heard, its state, and whether any action is allowed at all.

No action follows from this module alone. Silence on the bus is never death
(docs/facts/safety-rules.md#rule-2-silence-is-not-death): the strongest state of a silent node here is "late", and a
verdict on a lost node also needs evidence from Kubernetes (`verdict`).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from services.central.core.lost_nodes.guards import NOWHERE, Census, CountedNode, Guards, Places, silenced, weigh
from services.central.core.lost_nodes.rules import Rules
from shared.contracts.mode import NodeMode
from shared.contracts.readiness import ConfigRefusal, Readiness
from shared.core.bus.newest import NewestGate, Verdict

NodeState = Literal["ready", "unready", "late", "unknown"]
NODE_STATES: tuple[NodeState, ...] = ("ready", "unready", "late", "unknown")

HEARTBEAT_S = 10.0
"""Between two heartbeats of a node on which nothing changes."""


@dataclass(slots=True)
class Heartbeat:
    """The newest heartbeat of one node, with the time of its arrival by central's own monotonic clock."""

    heard_at_s: float
    ready: bool
    failing: tuple[str, ...]
    gate: NewestGate = field(default_factory=lambda: NewestGate(HEARTBEAT_S))
    applied: str | None = None
    """`entry_hash` of the configuration that all of its services work with; None: they differ, or have none."""
    revision: int | None = None
    """Oldest revision of the configuration among its services; None: one of them does not report it."""
    refusals: tuple[tuple[str, ConfigRefusal], ...] = ()
    """The services that have refused a revision, and which."""
    mode: NodeMode | None = None
    """Whether it observes or enforces, by its own report; None: not heard yet, or not reported."""


Ledger = dict[str, Heartbeat]
"""Every node that was heard, by name. `record` changes it in place, because 10 000 nodes send a thousand a second."""


def record(ledger: Ledger, readiness: Readiness, now_s: float) -> Verdict:
    """Take one heartbeat into the ledger; a replayed, stale or retired one changes nothing."""
    heartbeat = ledger.get(readiness.node)
    gate = heartbeat.gate if heartbeat else NewestGate(HEARTBEAT_S)
    verdict = gate.admit(readiness.boot_id, readiness.seq, now_s)
    if verdict == "new":
        failing = tuple(f"{health.service}: {health.why}" for health in readiness.services if not health.ok)
        hashes = {health.config_hash for health in readiness.services}
        # All services must agree: a node on which some still work with the old configuration has not
        # applied the new one.
        applied = hashes.pop() if len(hashes) == 1 else None
        revisions = [health.config_revision for health in readiness.services]
        known = [revision for revision in revisions if revision is not None]
        ledger[readiness.node] = Heartbeat(
            now_s,
            readiness.ready,
            failing,
            gate,
            applied,
            min(known) if known and len(known) == len(revisions) else None,
            tuple((h.service, h.config_refused) for h in readiness.services if h.config_refused is not None),
            readiness.mode or "enforce",
        )
    return verdict


def reconcile(ledger: Ledger, nodes: Collection[str], now_s: float) -> None:
    """Bring the ledger to the nodes that there are: one never heard of is silent from now on, others are dropped."""
    for node in ledger.keys() ^ set(nodes):
        if node in ledger:
            del ledger[node]
        else:
            # As if heard now: a new node has its time to start before it counts as silent.
            ledger[node] = Heartbeat(now_s, ready=False, failing=("never heard of",))


def forget(ledger: Ledger, now_s: float, rules: Rules) -> None:
    """Drop nodes that have been silent for longer than `forget_s`: they are not part of the cluster any more."""
    for node in [node for node, heartbeat in ledger.items() if now_s - heartbeat.heard_at_s > rules.forget_s]:
        del ledger[node]


@dataclass(frozen=True, slots=True)
class BusProbe:
    """Central's own message over the bus: when it last came back, and since when without a gap.

    While central did not receive from the bus, no node can be called silent, so that time counts for none of them.
    """

    heard_at_s: float | None = None
    since_s: float | None = None

    def returned(self, now_s: float, rules: Rules) -> "BusProbe":
        """Record that the probe came back; after a gap, listening restarts."""
        # Judged before this probe counts, because the gap that ends with it restarts the listening.
        return BusProbe(now_s, self.since_s if self.well(now_s, rules) else now_s)

    def well(self, now_s: float, rules: Rules) -> bool:
        """Whether the bus can be trusted now."""
        return self.heard_at_s is not None and now_s - self.heard_at_s <= rules.probe_max_age_s

    def restarted(self, now_s: float) -> "BusProbe":
        """Restart listening, as after a change of the rules."""
        return BusProbe(self.heard_at_s, now_s if self.since_s is not None else None)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of one node, and the reason in words."""

    state: NodeState
    why: str
    silent_s: float | None = 0.0
    """Seconds of certain silence; 0 while it is heard, None if unknown."""


READY = Standing("ready", "")
"""Of every node that is well: of 10 000 this one is all there is to say in most seconds."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Every node's standing by its name, and whether all action has to wait.

    It is combined with evidence from Kubernetes; nothing in it is a reason to evict.
    """

    nodes: Mapping[str, Standing] = field(default_factory=dict)
    bus_suspect: str = "central has just started"
    """Why central cannot judge silence now; empty when it can."""
    guards: Guards = field(default_factory=Guards)
    others: Mapping[str, Standing] = field(init=False, compare=False, repr=False)
    """The nodes that are not simply ready, ascending by name."""

    def __post_init__(self) -> None:
        """Gather the others once, for each step of a pass asks for them."""
        others = sorted((node, standing) for node, standing in self.nodes.items() if standing is not READY)
        object.__setattr__(self, "others", dict(others))

    @property
    def paused(self) -> tuple[str, ...]:
        """Why nothing may be done to any node now; empty: no guard objects to everything."""
        return (self.bus_suspect,) if self.bus_suspect else self.guards.paused

    def counts(self) -> dict[NodeState, int]:
        """Number of nodes in each state."""
        found = Counter(standing.state for standing in self.others.values())
        found["ready"] += len(self.nodes) - len(self.others)
        return {state: found[state] for state in NODE_STATES}


@dataclass(frozen=True, slots=True)
class Heard:
    """All that central knows from the bus, heartbeats and its own probe, and the place of each node."""

    ledger: Ledger
    probe: BusProbe
    places: Places = field(default_factory=Places)
    """Pool and zone of each node; one that is not among them is in none that is known."""


def assess(heard: Heard, before: Assessment, now_s: float, rules: Rules) -> Assessment:
    """Assess every node, and the guards over all of them.

    While the bus is suspect the guards count nothing, because all nodes would look silent at once, for a reason that is
    not theirs. Their memory stays, so that a pause does not end meanwhile.
    """
    ledger, probe = heard.ledger, heard.probe
    bus_suspect = _bus_suspect(probe, now_s, rules)
    fresh_at_s = now_s - rules.late_s
    nodes = {
        # First and without a call, for it is true of nearly all of them each time.
        node: READY
        if heartbeat.ready and heartbeat.heard_at_s >= fresh_at_s
        else _standing(heartbeat, bus_suspect, probe, now_s, rules)
        for node, heartbeat in ledger.items()
    }
    if bus_suspect:
        return Assessment(nodes, bus_suspect, silenced(before.guards, bus_suspect))
    assessed = Assessment(nodes, "", before.guards)
    others = [
        CountedNode(node, bad=True, silent_s=standing.silent_s, place=heard.places.by_node.get(node, NOWHERE))
        for node, standing in assessed.others.items()
    ]
    census = Census(heard.places.totals(len(ledger)), others)
    return replace(assessed, guards=weigh(census, before.guards, now_s, rules))


def _bus_suspect(probe: BusProbe, now_s: float, rules: Rules) -> str:
    """Why central cannot judge silence now; empty when it can."""
    if not probe.well(now_s, rules):
        return f"central did not hear its own probe within {rules.probe_max_age_s:g} s: the bus is suspect"
    listening_s = now_s - (probe.since_s if probe.since_s is not None else now_s)
    # A silence cannot be longer than the time of listening (docs/facts/safety-rules.md#rule-2-silence-is-not-death).
    if listening_s < rules.late_s:
        return f"central has listened for less than {rules.late_s:g} s"
    return ""


def _standing(heartbeat: Heartbeat, bus_suspect: str, probe: BusProbe, now_s: float, rules: Rules) -> Standing:
    # Before the bus is checked: a node that is heard is known, whatever the state of the bus.
    if now_s - heartbeat.heard_at_s <= rules.late_s:
        return READY if heartbeat.ready else Standing("unready", "; ".join(heartbeat.failing) or "says so itself")
    if bus_suspect:
        # None, not a duration: central did not listen, so the node may have sent all the time.
        return Standing("unknown", bus_suspect, None)
    silent_s = now_s - _silent_since(heartbeat, probe)
    if silent_s <= rules.late_s:
        return Standing("unknown", f"not heard of since central listens ({silent_s:.0f} s)", None)
    why = f"silent for {silent_s:.0f} s, at most {rules.late_s:g} s; silence alone is not death"
    return Standing("late", why, silent_s)


def _silent_since(heartbeat: Heartbeat, probe: BusProbe) -> float:
    return heartbeat.heard_at_s if probe.since_s is None else max(heartbeat.heard_at_s, probe.since_s)
