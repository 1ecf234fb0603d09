"""The ledger of heartbeats: when each node was heard, its state, and whether any action is allowed at all.

No action follows from this module alone. Silence on the bus is never death
(docs/facts/safety-rules.md#rule-2-silence-is-not-death): the strongest state of a silent node here is "late", and a
verdict on a lost node also needs evidence from Kubernetes (`verdict`).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.central.core.heartbeats.listening import BusProbe, ShardsHeard
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
    shard: int | None = None
    """The shard in which it was heard; None: not known, or heartbeats are not divided."""


Ledger = dict[str, Heartbeat]
"""Every node that was heard, by name. `record` changes it in place, because 10 000 nodes send a thousand a second."""


def record(ledger: Ledger, readiness: Readiness, now_s: float) -> Verdict:
    """Take one heartbeat into the ledger; a replayed, stale or retired one changes nothing."""
    heartbeat = ledger.get(readiness.node)
    gate = heartbeat.gate if heartbeat else NewestGate(HEARTBEAT_S)
    verdict = gate.admit(readiness.boot_id, readiness.seq, now_s)
    if verdict == "new":
        # One loop, for this is done thousands of times a second.
        failing, refusals = list[str](), list[tuple[str, ConfigRefusal]]()
        hashes, revisions = set[str | None](), set[int | None]()
        for health in readiness.services:
            hashes.add(health.config_hash)
            revisions.add(health.config_revision)
            if not health.ok:
                failing.append(f"{health.service}: {health.why}")
            if health.config_refused is not None:
                refusals.append((health.service, health.config_refused))
        ledger[readiness.node] = Heartbeat(
            now_s,
            readiness.ready,
            tuple(failing),
            gate,
            # All services must agree: a node on which some still work with the old configuration has not
            # applied the new one.
            hashes.pop() if len(hashes) == 1 else None,
            _oldest(revisions),
            tuple(refusals),
            readiness.mode or "enforce",
        )
    return verdict


def _oldest(revisions: Collection[int | None]) -> int | None:
    """The oldest revision; None where one is not reported, or there is none."""
    known = [revision for revision in revisions if revision is not None]
    return min(known) if known and len(known) == len(revisions) else None


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
        others = [node for node, standing in self.nodes.items() if standing is not READY]
        object.__setattr__(self, "others", {node: self.nodes[node] for node in sorted(others)})

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
    shards: ShardsHeard | None = None
    """What all centrals together hear; None: heartbeats are not divided."""

    def silent_since_s(self, heartbeat: Heartbeat) -> float:
        """Since when a node is silent for certain."""
        since_s = heartbeat.heard_at_s if self.probe.since_s is None else max(heartbeat.heard_at_s, self.probe.since_s)
        return since_s if self.shards is None else max(since_s, self.shards.since_s(heartbeat.shard))

    def bus_well(self, now_s: float, rules: Rules) -> bool:
        """Whether the bus can be trusted now, and somebody hears each shard."""
        return self.probe.well(now_s, rules) and (self.shards is None or not self.shards.unheard(now_s, rules))


def assess(heard: Heard, before: Assessment, now_s: float, rules: Rules) -> Assessment:
    """Assess every node, and the guards over all of them.

    While the bus is suspect the guards count nothing, because all nodes would look silent at once, for a reason that is
    not theirs. Their memory stays, so that a pause does not end meanwhile.
    """
    ledger = heard.ledger
    bus_suspect = _bus_suspect(heard, now_s, rules)
    fresh_at_s = now_s - rules.late_s
    nodes: dict[str, Standing] = dict.fromkeys(ledger, READY)
    # Only of few there is more to say, and nearly all the time of a look at 50 000 nodes is this line.
    doubtful = [node for node, one in ledger.items() if one.heard_at_s < fresh_at_s or not one.ready]
    for node in doubtful:
        nodes[node] = _standing(ledger[node], bus_suspect, heard, now_s, rules)
    if bus_suspect:
        return Assessment(nodes, bus_suspect, silenced(before.guards, bus_suspect))
    others = [
        CountedNode(node, bad=True, silent_s=nodes[node].silent_s, place=heard.places.by_node.get(node, NOWHERE))
        for node in sorted(doubtful)
        if nodes[node] is not READY
    ]
    census = Census(heard.places.totals(len(ledger)), others)
    return Assessment(nodes, "", weigh(census, before.guards, now_s, rules))


def _bus_suspect(heard: Heard, now_s: float, rules: Rules) -> str:
    """Why central cannot judge silence now; empty when it can."""
    probe = heard.probe
    if not probe.well(now_s, rules):
        return f"central did not hear its own probe within {rules.probe_max_age_s:g} s: the bus is suspect"
    listening_s = now_s - (probe.since_s if probe.since_s is not None else now_s)
    # A silence cannot be longer than the time of listening (docs/facts/safety-rules.md#rule-2-silence-is-not-death).
    if listening_s < rules.late_s:
        return f"central has listened for less than {rules.late_s:g} s"
    unheard = () if heard.shards is None else heard.shards.unheard(now_s, rules)
    if unheard:
        which = ", ".join(str(shard) for shard in unheard)
        return f"no central has heard shard {which} of the heartbeats within {rules.probe_max_age_s:g} s"
    return ""


def _standing(heartbeat: Heartbeat, bus_suspect: str, heard: Heard, now_s: float, rules: Rules) -> Standing:
    # Before the bus is checked: a node that is heard is known, whatever the state of the bus.
    if now_s - heartbeat.heard_at_s <= rules.late_s:
        return READY if heartbeat.ready else Standing("unready", "; ".join(heartbeat.failing) or "says so itself")
    if bus_suspect:
        # None, not a duration: central did not listen, so the node may have sent all the time.
        return Standing("unknown", bus_suspect, None)
    silent_s = now_s - heard.silent_since_s(heartbeat)
    if silent_s <= rules.late_s:
        return Standing("unknown", f"not heard of since central listens ({silent_s:.0f} s)", None)
    why = f"silent for {silent_s:.0f} s, at most {rules.late_s:g} s; silence alone is not death"
    return Standing("late", why, silent_s)
