"""Guards over the counts of nodes: they object if so many look bad that the cause is probably not the nodes.

A guard has a scope: the cluster, one pool, or one zone. It is checked again before each node.

Facts: docs/facts/safety-rules.md#guards-on-counts.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.central.core.lost_nodes.cluster_state import State, disruption
from services.central.core.lost_nodes.rules import Rules

CLUSTER = "cluster"
UNKNOWN_TOTAL = "it is not known how many nodes there are"

_ROUNDING = 1e-9  # so that 20 % of 35 nodes are 7 in binary fractions, too


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Pool and zone of a node; None: in none that is known."""

    pool: str | None = None
    zone: str | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Names of the scopes whose guards speak for such a node."""
        pool = () if self.pool is None else (f"pool/{self.pool}",)
        return (CLUSTER, *pool, *(() if self.zone is None else (f"zone/{self.zone}",)))


NOWHERE = NodePlace()


@dataclass(frozen=True, slots=True)
class CountedNode:
    """One node as the guards count it. `silent_s` as in `readiness.Standing`."""

    name: str
    bad: bool
    silent_s: float | None = 0.0
    place: NodePlace = NOWHERE


@dataclass(frozen=True, slots=True)
class Places:
    """Where the nodes stand, and how many there are in each pool and zone; one for all looks at the same nodes."""

    by_node: Mapping[str, NodePlace] = field(default_factory=dict)
    by_scope: Mapping[str, int] = field(default_factory=dict)
    """Without the cluster, of which nodes are that stand nowhere."""

    @classmethod
    def of(cls, by_node: Mapping[str, NodePlace]) -> "Places":
        """Of these nodes."""
        counted = Counter(scope for place in by_node.values() for scope in place.scopes if scope != CLUSTER)
        return cls(by_node, counted)

    def totals(self, nodes: int) -> Mapping[str, int]:
        """The number of nodes in each scope, where there are so many in all."""
        return {CLUSTER: nodes, **self.by_scope}


@dataclass(frozen=True, slots=True)
class Census:
    """How many nodes there are in each scope, and those of them that look bad or are silent, one by one."""

    totals: Mapping[str, int]
    others: Sequence[CountedNode]

    @classmethod
    def of(cls, nodes: Sequence[CountedNode]) -> "Census":
        """Of these nodes."""
        totals = Places.of({node.name: node.place for node in nodes}).totals(len(nodes))
        return cls(totals, [node for node in nodes if node.bad or node.silent_s])


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards' objections, and what they remember for the next count."""

    objections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By scope, ascending, why nothing may be done there now."""
    state: State = "Normal"
    actions_per_s: float = 0.0
    """How many nodes may be acted on in a second; 0 while the cluster is paused."""
    held_until_s: Mapping[str, float] = field(default_factory=dict)
    """By scope, when its last pause ends."""
    most_nodes: int = 0
    """The largest number of nodes lately, and when there were so many."""
    most_nodes_at_s: float = -math.inf

    @property
    def paused(self) -> tuple[str, ...]:
        """Why nothing may be done to any node; empty: no guard objects to everything."""
        return self.objections.get(CLUSTER, ())

    def objection(self, place: NodePlace) -> str:
        """Why nothing may be done to a node of that place; empty when something may."""
        return "; ".join(f"{scope}: {why}" for scope in place.scopes for why in self.objections.get(scope, ()))


def allowed_bad(total: int, bad: int, ratio: float) -> int:
    """How many of `total` nodes may look bad.

    One always may, more as a share of all; but none without a healthy peer: then it may as well be central or the bus
    that is ill. So a cluster of one node is never acted on, and of fewer than five nodes one at a time.
    """
    return 0 if bad == total else max(1, math.floor(ratio * total + _ROUNDING))


def weigh(census: Census | None, before: Guards, now_s: float, rules: Rules) -> Guards:
    """All guards over all nodes; None: it is not known which nodes there are, and nothing may be done."""
    if census is None:
        # The memory stays, because an outage of the API server must not erase how many nodes there were.
        unknown = replace(before, state="Normal", actions_per_s=0.0)
        return _holding(unknown, {CLUSTER: {UNKNOWN_TOTAL: rules.clean_s}}, now_s)
    total, bad = census.totals[CLUSTER], sum(node.bad for node in census.others)
    most, most_at_s = _most_nodes(before, total, now_s, rules)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    # A scope in which nothing is bad has nothing against it.
    for scope, bad_there in Counter(scope for node in census.others if node.bad for scope in node.place.scopes).items():
        if why := _too_many(bad_there, census.totals[scope], rules):
            found[scope][why] = rules.clean_s
    if why := _sudden(census, rules):
        found[CLUSTER][why] = rules.sudden_pause_s
    if total < (1 - rules.total_drop_ratio) * most:
        found[CLUSTER][f"{total} nodes are left of {most}: too many went at once"] = rules.clean_s
    now = disruption(total - bad, bad, ratio=rules.max_bad_ratio, actions_per_s=rules.actions_per_s)
    counted = Guards({}, now.state, now.actions_per_s, before.held_until_s, most, most_at_s)
    return _holding(counted, found, now_s)


def silenced(before: Guards, why: str) -> Guards:
    """The guards while nothing can be counted: nothing may be done, and what they remember stays."""
    return replace(before, objections={CLUSTER: (why,)}, actions_per_s=0.0)


def _holding(counted: Guards, found: Mapping[str, Mapping[str, float]], now_s: float) -> Guards:
    """Combine what was found now with what still holds: a pause ends only some time after its cause.

    `found` has by scope and reason the least seconds of a pause.
    """
    held = {scope: until_s for scope, until_s in counted.held_until_s.items() if until_s > now_s}
    for scope, reasons in found.items():
        # Restarted while the cause lasts: the pause ends a fixed time after it was last seen.
        held[scope] = max(held.get(scope, -math.inf), now_s + max(reasons.values()))
    objections = {
        scope: tuple(found[scope]) if scope in found else (f"a pause holds for another {held[scope] - now_s:.0f} s",)
        for scope in sorted(held)
    }
    pace = 0.0 if CLUSTER in objections else counted.actions_per_s
    return replace(counted, objections=objections, actions_per_s=pace, held_until_s=dict(sorted(held.items())))


def _too_many(bad: int, total: int, rules: Rules) -> str:
    allowed = allowed_bad(total, bad, rules.max_bad_ratio)
    return f"{bad} of {total} nodes look bad, at most {allowed} may" if bad > allowed else ""


def _sudden(census: Census, rules: Rules) -> str:
    newest_s = rules.late_s + rules.sudden_window_s
    # Only newly late nodes count: nodes that have been silent for long are a different event.
    sudden = sum(node.silent_s is not None and rules.late_s < node.silent_s <= newest_s for node in census.others)
    # Both bounds must be exceeded: in a small cluster a share means nothing, in a large one a number.
    limit = max(rules.sudden_nodes, math.floor(rules.sudden_ratio * census.totals[CLUSTER] + _ROUNDING))
    if sudden <= limit:
        return ""
    return f"{sudden} nodes fell silent within {rules.sudden_window_s:g} s, more than {limit}: one cause"


def _most_nodes(before: Guards, total: int, now_s: float, rules: Rules) -> tuple[int, float]:
    """Return the largest recent number of nodes, so that nodes that disappear one after another are noticed as well."""
    # After a while the smaller number is the normal one: a cluster may shrink.
    if total >= before.most_nodes or now_s - before.most_nodes_at_s > rules.sudden_pause_s:
        return total, now_s
    return before.most_nodes, before.most_nodes_at_s
