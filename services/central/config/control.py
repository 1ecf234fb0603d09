"""Dynamic configuration: from KCC and config objects to each node's entry, its CNC and every object's status.

A bad object is refused in its status, the last good one stays where it is, and all others go on.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from services.central.config.node_entries import NodeEntries, Source
from services.central.core.kcc.kinds import check_kcc
from services.central.core.kcc.targets import VALIDATE_FAILED, keys_by_priority
from services.central.core.objects.cnc import ConfigEntry, NodeConfig
from services.central.core.objects.seen import CompanionSeen, NodeSeen, utc
from services.central.core.rollout.config_documents import (
    KccSeen,
    TargetSeen,
    cnc_status,
    kcc_status,
    refused_status,
    rolled_status,
    same_status,
)
from services.central.core.rollout.rollout import NodeEntry, Rollout, roll_out, unused
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import ADMIN_QOS_CONFIGS, CNCS, EVICTION_CONFIGS, KCCS, ApiKind
from shared.errors import Refused
from shared.ports import Clock, Objects

log = structlog.get_logger()

CONFIG_KINDS: tuple[ApiKind, ...] = (EVICTION_CONFIGS, ADMIN_QOS_CONFIGS)
"""Kinds of config objects; where two say the same for a node, the later one holds."""
NO_KCC = "MatchMoreOrLessThanOneKCC"

Targets = Mapping[str, Sequence[TargetSeen]]
"""Config objects by the resource name of their kind."""


class ConfigControl:
    """One pass after another; everything that must survive is in the API server and in the bucket."""

    def __init__(self, objects: Objects, entries: NodeEntries, clock: Clock) -> None:
        self._objects, self._entries, self._clock = objects, entries, clock
        self.pointing = EachNode(clock, "point CustomNodeConfig")
        self.refused: dict[str, str] = {}
        """Objects that are not in force as they stand, with the reason."""

    async def pass_over(
        self,
        nodes: Sequence[NodeSeen],
        cncs: Mapping[str, CompanionSeen],
        kccs: Sequence[KccSeen],
        targets: Targets,
        said: Callable[[str], str | None],
    ) -> None:
        """Bring nodes, CNCs and statuses to what the objects say. `said`: which entry a node says it works with.

        Raises:
            SubletError: bus or API server are away, or refuse; what was done stays, and the next pass goes on.
        """
        now = utc(self._clock.wall())
        live = {kind.plural: await self._unexpired(kind, targets.get(kind.plural, ()), now) for kind in CONFIG_KINDS}
        verdicts = self._judge(kccs)
        valid = {k.kcc.target_type: k for k in kccs if verdicts[k.kcc.name][0] == "Normal"}
        rollouts = {plural: _roll(seen, valid[plural], nodes, cncs) for plural, seen in live.items() if plural in valid}
        wanted = {node.name: _entries(node.name, cncs.get(node.name), rollouts) for node in nodes}
        await self._entries.write({name: _sources(entries, live) for name, entries in wanted.items()})

        async def point(name: str) -> None:
            cnc, entries = cncs.get(name), wanted[name]
            if cnc is not None and set(cnc.entries) != set(entries):
                document = {"metadata": {"name": name}, "status": cnc_status(entries)}
                await self._objects.patch(CNCS, document, status=True)

        self.pointing.keep(wanted)
        await self.pointing.each(sorted(wanted), point)
        await self._tell(kccs, verdicts, live, rollouts, wanted, said, now)

    async def _unexpired(self, kind: ApiKind, targets: Sequence[TargetSeen], now: str) -> list[TargetSeen]:
        """Objects without those whose time has passed: these are deleted."""
        for seen in targets:
            if seen.over(now):
                await self._objects.delete(kind, seen.target.name, seen.target.namespace, uid=seen.uid)
                log.info("config.expired", kind=kind.kind, object=seen.target.key)
        return [seen for seen in targets if not seen.over(now)]

    def _judge(self, kccs: Sequence[KccSeen]) -> dict[str, tuple[str, str]]:
        """Reason and message for each KCC by its key."""
        known = [kind.plural for kind in CONFIG_KINDS]
        found = {}
        for seen in kccs:
            answer = check_kcc(seen.kcc, [other.kcc for other in kccs], known)
            found[seen.kcc.name] = (answer.reason, answer.message) if not seen.problem else (
                "TargetTypeNotAllowed", seen.problem)  # fmt: skip
        return found

    async def _tell(
        self,
        kccs: Sequence[KccSeen],
        verdicts: Mapping[str, tuple[str, str]],
        live: Targets,
        rollouts: Mapping[str, Rollout],
        wanted: Mapping[str, Sequence[ConfigEntry]],
        said: Callable[[str], str | None],
        now: str,
    ) -> None:
        """Write the statuses that differ."""
        applied = Counter(
            entry for name, entries in wanted.items() if self._entries.applied(name, said(name)) for entry in entries
        )
        refused: dict[str, str] = {}
        invalid: dict[str, list[str]] = {}
        for kind in CONFIG_KINDS:
            rollout = rollouts.get(kind.plural)
            for seen in live[kind.plural]:
                key, outcome = seen.target.key, _outcome(kind, seen, rollout)
                if outcome is None:
                    continue
                if isinstance(outcome, Refused):
                    refused[f"{kind.kind} {key}"] = str(outcome)
                    invalid.setdefault(kind.plural, []).append(key)
                    status = refused_status(seen, outcome, now)
                else:
                    entry = ConfigEntry(type=kind.plural, namespace=seen.target.namespace, name=seen.target.name,
                                        hash=outcome.hash)  # fmt: skip
                    status = rolled_status(seen, outcome, applied[entry], now)
                await self._write_status(kind, seen.target.namespace, seen.target.name, seen.status, status)
        for kcc in kccs:
            reason, message = verdicts[kcc.kcc.name]
            if reason != "Normal":
                refused[f"{KCCS.kind} {kcc.kcc.name}"] = message
            status = kcc_status(kcc, reason, message, sorted(invalid.get(kcc.kcc.target_type, ())), now)
            await self._write_status(KCCS, kcc.namespace, kcc.name, kcc.status, status)
        for name in sorted(refused.keys() - self.refused.keys()):
            log.error("config.refused", object=name, why=refused[name])
        self.refused = refused

    async def _write_status(
        self, kind: ApiKind, namespace: str, name: str, there: Mapping[str, Any], wanted: Mapping[str, Any]
    ) -> None:
        if not same_status(there, wanted):
            meta = {"name": name, "namespace": namespace}
            await self._objects.patch(kind, {"metadata": meta, "status": wanted}, status=True)


def _outcome(kind: ApiKind, seen: TargetSeen, rollout: Rollout | None) -> Any:
    if rollout is not None:
        return rollout.targets.get(seen.target.key)
    why = (
        seen.problem or f"no valid KatalystCustomConfig declares {kind.plural}: create one, or correct those there are"
    )
    return Refused(why, reason=VALIDATE_FAILED if seen.problem else NO_KCC)


def _roll(
    seen: Sequence[TargetSeen], kcc: KccSeen, nodes: Sequence[NodeSeen], cncs: Mapping[str, CompanionSeen]
) -> Rollout:
    """The pass over one kind; nodes whose object is gone, and for which there is none, lose their entry."""
    rows = [NodeEntry(n.name, n.labels, _entry_of(cncs.get(n.name), kcc.kcc.target_type)) for n in nodes]
    targets = [one.target for one in seen]
    bad = {one.target.key: Refused(one.problem, reason=VALIDATE_FAILED) for one in seen if one.problem}
    done = roll_out(targets, keys_by_priority(kcc.kcc.allowed_keys), rows, bad)
    return Rollout({**done.nodes, **dict.fromkeys(unused(targets, rows))}, done.targets)


def _entry_of(cnc: CompanionSeen | None, plural: str) -> NodeConfig | None:
    for entry in cnc.entries if cnc else ():
        if entry.type == plural:
            return NodeConfig(namespace=entry.namespace, name=entry.name, hash=entry.hash)
    return None


def _entries(node: str, cnc: CompanionSeen | None, rollouts: Mapping[str, Rollout]) -> list[ConfigEntry]:
    """What a CNC should point to: as rolled out, and for all other kinds as it is."""
    found = [entry for entry in (cnc.entries if cnc else ()) if entry.type not in rollouts]
    for plural, rollout in rollouts.items():
        if (config := rollout.nodes[node]) is not None:
            found.append(ConfigEntry(type=plural, **config.model_dump()))
    return sorted(found, key=lambda entry: entry.type)


def _sources(entries: Sequence[ConfigEntry], live: Targets) -> dict[str, Source]:
    """The settings behind a node's entries, where the object still is as the entry says."""
    found: dict[str, Source] = {}
    for kind in CONFIG_KINDS:
        for entry in (one for one in entries if one.type == kind.plural):
            config = NodeConfig(namespace=entry.namespace, name=entry.name, hash=entry.hash)
            found[kind.plural] = Source(config, _settings(config, live[kind.plural]))
    return found


def _settings(config: NodeConfig, seen: Sequence[TargetSeen]) -> Mapping[str, Any] | None:
    for one in seen:
        if one.target.key == f"{config.namespace}/{config.name}" and not one.problem and one.hash == config.hash:
            return one.mapped.settings
    return None
