"""One pass over configuration, decided completely before anything is written.

From KCC and config objects to each node's settings, its CNC and every object's status. A bad object is refused in its
status, the last valid one stays, and all others continue.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.central.core.kcc.kinds import check_kcc
from services.central.core.kcc.targets import VALIDATE_FAILED, keys_by_priority
from services.central.core.objects.cnc import ConfigEntry, NodeConfig
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import NodeSeen
from services.central.core.rollout.config_documents import (
    KccSeen,
    TargetSeen,
    Updated,
    kcc_status,
    refused_status,
    rolled_status,
    same_status,
)
from services.central.core.rollout.rollout import NO_KCC, NodeEntry, Rolled, Rollout, roll_back, roll_out, unused
from shared.core.api_kind import ADMIN_QOS_CONFIGS, EVICTION_CONFIGS, KCCS, ApiKind
from shared.errors import Refused

CONFIG_KINDS: tuple[ApiKind, ...] = (EVICTION_CONFIGS, ADMIN_QOS_CONFIGS)
"""Kinds of config objects; where two say the same for a node, the later one holds."""

NodeConfigs = Mapping[str, NodeConfig | None]
"""What each node's CNC points to, of one kind."""
Targets = Mapping[str, Sequence[TargetSeen]]
"""Config objects by the resource name of their kind."""


@dataclass(frozen=True, slots=True)
class ConfigView:
    """All that a pass is about, as the API server has it."""

    nodes: Sequence[NodeSeen]
    cncs: Mapping[str, CompanionSeen]
    """By the name of their node."""
    kccs: Sequence[KccSeen]
    targets: Targets


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """What one kind says for a node; `settings` None: only the hash of that state of the object is known."""

    config: NodeConfig
    settings: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """What the objects request."""

    kccs: Sequence[KccSeen]
    expired: Sequence[tuple[ApiKind, TargetSeen]]
    """Temporary objects whose time has passed: these are deleted, and nothing follows from them."""
    live: Targets
    """All others."""
    verdicts: Mapping[str, tuple[str, str]]
    """Reason and message for each KCC by its key."""
    rollouts: Mapping[str, Rollout]
    """By kind, for those that a valid KCC declares."""
    entries: Mapping[str, Sequence[ConfigEntry]]
    """By node what its CNC should point to."""

    @property
    def sources(self) -> dict[str, dict[str, ConfigSource]]:
        """Return by node the settings of its entries, if the object is still as the entry says."""
        return {name: _sources(entries, self.live) for name, entries in self.entries.items()}


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A status that is not as it should be."""

    kind: ApiKind
    namespace: str
    name: str
    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Statuses:
    """Statuses to write, and which objects are not in force as they are, with the reason."""

    writes: Sequence[StatusWrite]
    refused: Mapping[str, str]


def plan_configs(view: ConfigView, now: str) -> ConfigPlan:
    """Which node gets which configuration now."""
    found = [(kind, seen) for kind in CONFIG_KINDS for seen in view.targets.get(kind.plural, ())]
    # An object that is over has no effect from this pass on, whether or not its deletion works.
    live = {kind.plural: [seen for one, seen in found if one == kind and not seen.over(now)] for kind in CONFIG_KINDS}
    verdicts = _verdicts(view.kccs)
    valid = {k.kcc.target_type: k for k in view.kccs if verdicts[k.kcc.name][0] == "Normal"}
    rollouts = {
        plural: _roll(seen, valid[plural], view.nodes, view.cncs) for plural, seen in live.items() if plural in valid
    }
    deleted = {plural: _roll_back(plural, live[plural], view) for plural in _undeclared(view.kccs)}
    outcomes = {plural: rollout.nodes for plural, rollout in (rollouts | deleted).items()}
    return ConfigPlan(
        kccs=view.kccs,
        expired=[(kind, seen) for kind, seen in found if seen.over(now)],
        live=live,
        verdicts=verdicts,
        rollouts=rollouts,
        entries={node.name: _entries(node.name, view.cncs.get(node.name), outcomes) for node in view.nodes},
    )


def plan_statuses(plan: ConfigPlan, applied: Sequence[str], now: str) -> Statuses:
    """The statuses that differ; `applied` are the nodes that say they work with the configuration of this plan."""
    holders = _holders(plan, applied)
    writes: list[StatusWrite] = []
    refused: dict[str, str] = {}
    invalid: dict[str, list[str]] = {}
    for kind in CONFIG_KINDS:
        for seen in plan.live[kind.plural]:
            target = seen.target
            outcome = _outcome(kind, seen, plan.rollouts.get(kind.plural))
            if outcome is None:
                continue
            if isinstance(outcome, Refused):
                refused[f"{kind.kind} {target.key}"] = str(outcome)
                invalid.setdefault(kind.plural, []).append(target.key)
                status = refused_status(seen, outcome, now)
            else:
                entry = ConfigEntry(type=kind.plural, namespace=target.namespace, name=target.name, hash=outcome.hash)
                own = plan.rollouts[kind.plural].own.get(target.key, ())
                status = rolled_status(seen, outcome, Updated.of(own, holders[entry]), now)
            if not same_status(seen.status, status):
                writes.append(StatusWrite(kind, target.namespace, target.name, status))
    for kcc in plan.kccs:
        reason, message = plan.verdicts[kcc.kcc.name]
        if reason != "Normal":
            refused[f"{KCCS.kind} {kcc.kcc.name}"] = message
        status = kcc_status(kcc, reason, message, sorted(invalid.get(kcc.kcc.target_type, ())), now)
        if not same_status(kcc.status, status):
            writes.append(StatusWrite(KCCS, kcc.namespace, kcc.name, status))
    return Statuses(writes, refused)


def _holders(plan: ConfigPlan, nodes: Sequence[str]) -> defaultdict[ConfigEntry, set[str]]:
    """Return which of these nodes have each entry."""
    found: defaultdict[ConfigEntry, set[str]] = defaultdict(set)
    for name in nodes:
        for entry in plan.entries[name]:
            found[entry].add(name)
    return found


def _undeclared(kccs: Sequence[KccSeen]) -> list[str]:
    """Return the kinds whose KCC was deleted, or never existed."""
    named = {seen.kcc.target_type for seen in kccs}
    # An unreadable KCC may be that of any kind, and a broken KCC must not reset a cluster.
    return [] if "" in named else [kind.plural for kind in CONFIG_KINDS if kind.plural not in named]


def _verdicts(kccs: Sequence[KccSeen]) -> dict[str, tuple[str, str]]:
    known = [kind.plural for kind in CONFIG_KINDS]
    found: dict[str, tuple[str, str]] = {}
    for seen in kccs:
        verdict = check_kcc(seen.kcc, [other.kcc for other in kccs], known)
        problem = ("TargetTypeNotAllowed", seen.problem)
        found[seen.kcc.name] = problem if seen.problem else (verdict.reason, verdict.message)
    return found


def _outcome(kind: ApiKind, seen: TargetSeen, rollout: Rollout | None) -> Rolled | Refused | None:
    if rollout is not None:
        return rollout.targets.get(seen.target.key)
    nobody = f"no valid KatalystCustomConfig declares {kind.plural}: create one, or correct those there are"
    return Refused(seen.problem or nobody, reason=VALIDATE_FAILED if seen.problem else NO_KCC)


def _roll(
    seen: Sequence[TargetSeen], kcc: KccSeen, nodes: Sequence[NodeSeen], cncs: Mapping[str, CompanionSeen]
) -> Rollout:
    """Roll out one kind; nodes whose object is gone, without another one, lose their entry."""
    rows = _rows(kcc.kcc.target_type, nodes, cncs)
    targets = [one.target for one in seen]
    bad = {one.target.key: Refused(one.problem, reason=VALIDATE_FAILED) for one in seen if one.problem}
    done = roll_out(targets, keys_by_priority(kcc.kcc.allowed_keys), rows, bad)
    return Rollout({**done.nodes, **dict.fromkeys(unused(targets, rows))}, done.targets, done.own)


def _roll_back(plural: str, seen: Sequence[TargetSeen], view: ConfigView) -> Rollout:
    return roll_back([one.target for one in seen], _rows(plural, view.nodes, view.cncs))


def _rows(plural: str, nodes: Sequence[NodeSeen], cncs: Mapping[str, CompanionSeen]) -> list[NodeEntry]:
    return [NodeEntry(node.name, node.labels, _entry_of(cncs.get(node.name), plural)) for node in nodes]


def _entry_of(cnc: CompanionSeen | None, plural: str) -> NodeConfig | None:
    for entry in cnc.entries if cnc else ():
        if entry.type == plural:
            return NodeConfig(namespace=entry.namespace, name=entry.name, hash=entry.hash)
    return None


def _entries(node: str, cnc: CompanionSeen | None, outcomes: Mapping[str, NodeConfigs]) -> list[ConfigEntry]:
    """Return what a CNC should point to: as rolled out or back, and unchanged for all other kinds."""
    # Those are the kinds whose KCC is there and broken: it must not reset a cluster.
    found = [entry for entry in (cnc.entries if cnc else ()) if entry.type not in outcomes]
    for plural, nodes in outcomes.items():
        if (config := nodes[node]) is not None:
            found.append(ConfigEntry(type=plural, **config.model_dump()))
    return sorted(found, key=lambda entry: entry.type)


def _sources(entries: Sequence[ConfigEntry], live: Targets) -> dict[str, ConfigSource]:
    found: dict[str, ConfigSource] = {}
    for kind in CONFIG_KINDS:
        for entry in (one for one in entries if one.type == kind.plural):
            config = NodeConfig(namespace=entry.namespace, name=entry.name, hash=entry.hash)
            found[kind.plural] = ConfigSource(config, _settings(config, live[kind.plural]))
    return found


def _settings(config: NodeConfig, seen: Sequence[TargetSeen]) -> Mapping[str, Any] | None:
    for one in seen:
        # By hash: of an older state of the object, which a canary holds back, only the bucket still has the settings.
        if one.target.key == f"{config.namespace}/{config.name}" and not one.problem and one.hash == config.hash:
            return one.mapped.settings
    return None
