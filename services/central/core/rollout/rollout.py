"""The rollout of one kind of config: which node gets which object now.

Only a bad object is refused: the nodes that it would apply to, and those that have it, keep their state; the nodes of
other objects continue (docs/facts/safety-rules.md#rule-7-bad-config-never-applies).

Facts: docs/facts/katalyst-cluster.md#which-config-a-node-gets.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from services.central.core.kcc.canary import canary_nodes
from services.central.core.kcc.match import match
from services.central.core.kcc.targets import KccTarget, check_target
from services.central.core.objects.cnc import NodeConfig
from services.central.core.rollout.config_hash import hash_of
from shared.errors import Refused

NO_KCC = "MatchMoreOrLessThanOneKCC"
"""Reason of a target of whose kind no valid KCC is there."""


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """A node, and what its CNC points to; None: to nothing of this kind."""

    name: str
    labels: Mapping[str, str]
    config: NodeConfig | None


@dataclass(frozen=True, slots=True)
class Rolled:
    """The result of one accepted target: its hash, how many nodes it should have, and how many have it."""

    hash: str
    target_nodes: int
    canary_nodes: int
    updated_target_nodes: int
    updated_nodes: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """After the pass: by node what its CNC points to, and by target (its key) what it comes to or why it is refused."""

    nodes: Mapping[str, NodeConfig | None]
    targets: Mapping[str, Rolled | Refused]
    own: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By accepted target the nodes that it is for."""


def roll_out(
    targets: Sequence[KccTarget],
    allowed: Mapping[int, Sequence[str]],
    nodes: Sequence[NodeEntry],
    bad: Mapping[str, Refused] | None = None,
) -> Rollout:
    """One pass, nodes in the order of their names; a target that is being deleted is for no node and has no status.

    `bad` are targets (by key) that are refused for what is in them.
    """
    live = sorted((target for target in targets if not target.deleting), key=lambda target: target.key)
    ordered = sorted(nodes, key=lambda node: node.name)
    refused = _refused(live, allowed) | {target.key: bad[target.key] for target in live if bad and target.key in bad}
    own = _own_nodes(live, refused, ordered)
    cutoffs: dict[str, int] = {}
    for target in live:
        try:
            cutoffs[target.key] = canary_nodes(target.update_strategy, len(own[target.key]), paused=target.paused)
        except Refused as refusal:
            refused.setdefault(target.key, refusal)
    accepted = [target for target in live if target.key not in refused]
    wanted = {target.key: _config(target) for target in accepted}
    entries = {node.name: node.config for node in ordered}
    for target in accepted:
        # The first by name: the same nodes in each pass, so a canary does not wander through the cluster.
        entries |= dict.fromkeys(own[target.key][: cutoffs[target.key]], wanted[target.key])
    holders: dict[NodeConfig | None, set[str]] = defaultdict(set)
    for node, config in entries.items():
        holders[config].add(node)
    outcome: dict[str, Rolled | Refused] = dict(refused)
    for target in accepted:
        there = holders[wanted[target.key]]
        outcome[target.key] = Rolled(
            hash=wanted[target.key].hash,
            target_nodes=len(own[target.key]),
            canary_nodes=cutoffs[target.key],
            updated_target_nodes=len(there.intersection(own[target.key])),
            updated_nodes=len(there),
        )
    return Rollout(entries, {target.key: outcome[target.key] for target in live}, own)


def roll_back(targets: Sequence[KccTarget], nodes: Sequence[NodeEntry]) -> Rollout:
    """Return the state of a kind whose KCC was deleted: its targets are refused, and nodes of targets that are gone
    as well lose their entry."""
    nobody = Refused("no KatalystCustomConfig declares this kind of config: create one", reason=NO_KCC)
    entries = {node.name: node.config for node in nodes} | dict.fromkeys(unused(targets, nodes))
    return Rollout(entries, {target.key: nobody for target in targets if not target.deleting})


def unused(targets: Sequence[KccTarget], nodes: Sequence[NodeEntry]) -> list[str]:
    """Nodes, ascending, whose entry names an object that is gone while none is for them: the entry may be cleared."""
    live = [target for target in targets if not target.deleting]
    keys = {target.key for target in live}
    return sorted(
        node.name
        for node in nodes
        if node.config is not None
        and f"{node.config.namespace}/{node.config.name}" not in keys
        and not match(node.name, node.labels, live).matched
    )


def _refused(live: Sequence[KccTarget], allowed: Mapping[int, Sequence[str]]) -> dict[str, Refused]:
    found = {}
    for target in live:
        try:
            check_target(target, allowed, live)
        except Refused as refusal:
            found[target.key] = refusal
    return found


def _own_nodes(
    live: Sequence[KccTarget], refused: Mapping[str, Refused], nodes: Sequence[NodeEntry]
) -> dict[str, list[str]]:
    """Return the nodes of each target, ascending.

    A node with a refused target keeps it, unless another target takes precedence anyway, because it is no longer known
    to which nodes the refused one should apply.
    """
    own: dict[str, list[str]] = defaultdict(list)
    bad = {target.key: target for target in live if target.key in refused}
    for node in nodes:
        holder = bad.get(f"{node.config.namespace}/{node.config.name}") if node.config else None
        try:
            # Among all that live, the refused ones too: a node whose best object is refused must not
            # fall to the next best.
            chosen = match(node.name, node.labels, live).selected()
        except Refused:
            continue
        if holder is None or chosen.rank < holder.rank:
            own[chosen.key].append(node.name)
    return own


def _config(target: KccTarget) -> NodeConfig:
    return NodeConfig(namespace=target.namespace, name=target.name, hash=hash_of(target.spec_config))
