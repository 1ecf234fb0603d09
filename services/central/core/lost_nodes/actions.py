"""The actions on all nodes: which are done now, under all guards and at one pace."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from services.central.core.lost_nodes.guards import NOWHERE, Guards, NodePlace
from services.central.core.lost_nodes.pacing import Pace
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Action, Judged, due
from shared.core.evictions.intents import TokenBucket

OBSERVES = "the mode of the node is observe"
_ORDER: tuple[Action, ...] = ("untaint", "taint", "evict")


@dataclass(frozen=True, slots=True)
class NodeCase:
    """One node with its verdict."""

    node: str
    judged: Judged
    tainted: bool
    has_reclaimed_pods: bool
    place: NodePlace = NOWHERE
    failing: bool = False
    """Whether what was last tried could not be done."""
    observes: bool = False
    """Whether the node only observes: then it keeps its pods, and gets no taint."""
    paused: str = ""
    """Why an operator has it keep its pods; it gets a taint all the same."""


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """What is done to a node, or, with an objection, what would be."""

    node: str
    action: Action
    objection: str = ""


def plan_actions(
    cases: Sequence[NodeCase], guards: Guards, bucket: TokenBucket, now_s: float, rules: Rules
) -> tuple[list[PlannedAction], TokenBucket]:
    """Return the due actions, taints before evictions and then the longest lost first, and the bucket afterwards.

    Nodes with failures come last, so that one whose every write is refused does not use up the tokens of all others.
    Removing a taint is not paced and no guard objects to it, because it does no harm. `bucket` must be saved before any
    action, and each action validated right before.
    """
    wanted = sorted(
        ((case, action) for case in cases if (action := _due(case, rules)) != "nothing"),
        key=lambda row: (row[0].failing, _ORDER.index(row[1]), -row[0].judged.lost_s, row[0].node),
    )
    pace, planned = Pace(guards.actions_per_s), list[PlannedAction]()
    for case, action in wanted:
        guarded = OBSERVES if case.observes else guards.objection(case.place)
        objection = "" if action == "untaint" else guarded or (case.paused if action == "evict" else "")
        if not objection and action != "untaint":
            left = pace.spend(bucket, now_s)
            objection, bucket = ("waits for its turn", bucket) if left is None else ("", left)
        planned.append(PlannedAction(case.node, action, objection))
    return planned, bucket


def plan_evictions(
    pods: Collection[str], under_way: Collection[str], bucket: TokenBucket, now_s: float, rules: Rules
) -> tuple[list[str], TokenBucket]:
    """Which of a lost node's pods go now, by name, and the bucket of all pods afterwards.

    Few at a time on a node, so that a mistake is seen before it is repeated; `under_way` are those that still go.
    """
    pace, going = Pace(rules.pods_per_min / 60, rules.pods_per_node), list[str]()
    # In the order of names, so that a new leader continues with the same pods instead of choosing others.
    for pod in sorted(set(pods) - set(under_way)):
        if len(under_way) + len(going) >= rules.pods_per_node:
            break
        left = pace.spend(bucket, now_s)
        if left is None:
            break
        going.append(pod)
        bucket = left
    return going, bucket


def _due(case: NodeCase, rules: Rules) -> Action:
    return due(case.judged, tainted=case.tainted, has_reclaimed_pods=case.has_reclaimed_pods, rules=rules)
