"""What would happen, moment by moment, if some nodes fell silent now: central's own rules, walked through in time."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from services.central.core.lost_nodes.actions import NodeCase, plan_actions, plan_evictions
from services.central.core.lost_nodes.guards import NOWHERE, Census, CountedNode, Guards, NodePlace, Places, weigh
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Evidence, Judged, judge, withdrawn
from shared.core.evictions.intents import TokenBucket

STEP_S = 5.0
MOST_S = 4 * 3600.0

Happening = Literal["withdrawn", "paused", "resumed", "tainted", "evicted"]


@dataclass(frozen=True, slots=True)
class StoryNode:
    """A node of the cluster before anything happens."""

    name: str
    place: NodePlace = NOWHERE
    reclaimed_pods: int = 0
    observes: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """Which nodes fall silent at one moment, and what the API server says of them."""

    silent: Collection[str]
    agents_ready: bool = False
    """Whether their agents' pods stay ready, as where only the bus is cut."""
    nodes_stale: bool = False
    """Whether their kubelets fall silent as well."""


@dataclass(frozen=True, slots=True)
class LossStep:
    """Something that happens, so many seconds after the silence began."""

    at_s: float
    what: Happening
    nodes: tuple[str, ...] = ()
    pods: int = 0
    why: str = ""


def _full() -> TokenBucket:
    return TokenBucket(1, 0.0)


@dataclass(slots=True)
class _Walk:
    """What has come to be so far."""

    guards: Guards = field(default_factory=Guards)
    nodes: TokenBucket = field(default_factory=_full)
    pods: TokenBucket = field(default_factory=_full)
    withdrawn: bool = False
    tainted: set[str] = field(default_factory=set)
    left: dict[str, int] = field(default_factory=dict)
    """Reclaimed pods by node that are still there."""
    objection: str = ""


def tell_loss(nodes: Sequence[StoryNode], loss: Loss, rules: Rules, until_s: float) -> Iterator[LossStep]:
    """The moments in their order. All budgets are full at the beginning, and a pod that is evicted is gone at once.

    All nodes were heard when it begins, and those that do not fall silent are heard all the time.
    """
    gone = sorted((node for node in nodes if node.name in loss.silent), key=lambda node: node.name)
    places = Places.of({node.name: node.place for node in nodes})
    walk = _Walk(left={node.name: node.reclaimed_pods for node in gone})
    for step in range(int(min(until_s, MOST_S) / STEP_S) + 1):
        at_s = step * STEP_S
        late = at_s > rules.late_s
        others = [CountedNode(node.name, bad=True, silent_s=at_s, place=node.place) for node in gone if late]
        walk.guards = weigh(Census(places.totals(len(nodes)), others), walk.guards, at_s, rules)
        judged = judge(_evidence(loss, at_s), rules)
        yield from _pause(walk, at_s)
        yield from _withdraw(walk, gone, judged, at_s)
        yield from _act(walk, gone, judged, at_s, rules)


def _evidence(loss: Loss, at_s: float) -> Evidence:
    not_ready_s = 0.0 if loss.agents_ready else at_s
    return Evidence(
        bus_well=True,
        silent_s=at_s,
        api_age_s=0.0,
        agent_ready=loss.agents_ready,
        agent_not_ready_s=not_ready_s,
        node_stale=loss.nodes_stale,
    )


def _pause(walk: _Walk, at_s: float) -> Iterator[LossStep]:
    """A pause that begins or ends; how long one still holds is no news."""
    found = {scope: why for scope, why in walk.guards.objections.items() if not why[0].startswith("a pause holds")}
    said = "; ".join(f"{scope}: {reason}" for scope, why in found.items() for reason in why)
    if walk.guards.objections and said and not walk.objection:
        walk.objection = said
        yield LossStep(at_s, "paused", why=said)
    elif not walk.guards.objections and walk.objection:
        walk.objection = ""
        yield LossStep(at_s, "resumed")


def _withdraw(walk: _Walk, gone: Sequence[StoryNode], judged: Judged, at_s: float) -> Iterator[LossStep]:
    if withdrawn(judged) and not walk.withdrawn:
        walk.withdrawn = True
        yield LossStep(at_s, "withdrawn", tuple(node.name for node in gone), why=judged.verdict)


def _act(walk: _Walk, gone: Sequence[StoryNode], judged: Judged, at_s: float, rules: Rules) -> Iterator[LossStep]:
    cases = [
        NodeCase(
            node.name,
            judged,
            tainted=node.name in walk.tainted,
            has_reclaimed_pods=walk.left[node.name] > 0,
            place=node.place,
            observes=node.observes,
        )
        for node in gone
    ]
    planned, walk.nodes = plan_actions(cases, walk.guards, walk.nodes, at_s, rules)
    for one in planned:
        if one.objection:
            continue
        if one.action == "taint":
            walk.tainted.add(one.node)
            yield LossStep(at_s, "tainted", (one.node,))
        elif one.action == "evict":
            pods = [f"{number:06d}" for number in range(walk.left[one.node])]
            going, walk.pods = plan_evictions(pods, (), walk.pods, at_s, rules)
            walk.left[one.node] -= len(going)
            if going:
                yield LossStep(at_s, "evicted", (one.node,), len(going))
