"""What a cluster needs before its first node is handed over: missing changes of objects. Pure."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from services.central.core.kcc.match import match
from services.central.core.kcc.targets import KccTarget
from services.central.core.rollout.config_documents import target_of
from shared.contracts.mode import NodeMode
from shared.core.api_kind import ADMIN_QOS_CONFIGS, KCCS
from shared.core.text.json_text import read_json_object
from shared.errors import Conflict, Refused
from sublet.migrate.labels import AWAY, BACK, BEGUN, DONE, LEFT, TAKEOVER
from sublet.migrate.plan.objects import part_of, rows_of, words_of

PRIORITY = 1000
"""Of our config objects among those that select by labels: they go before the others."""
NAME = "sublet-takeover"
MODES = {DONE: "enforce", BACK: "observe"}
THRESHOLDS, STRATEGIES = "resource-threshold-config", "nodeStrategies"
MAX_KEY_BYTES = 1 << 20
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object to create, or to change as a merge patch; it is refused where the object has changed meanwhile."""

    title: str
    says: str
    path: str
    body: Mapping[str, Any]
    creates: bool = False


class TargetIndex:
    """Which of others' config objects a node gets: what names nodes is found by their names, the rest is compared."""

    def __init__(self, targets: Sequence[KccTarget]) -> None:
        self._named: dict[str, list[KccTarget]] = {}
        self._rest = [target for target in targets if not target.node_names]
        for target in targets:
            for node in target.names:
                self._named.setdefault(node, []).append(target)

    def of_node(self, node: str, labels: Mapping[str, str]) -> KccTarget | None:
        """The first by name of those that go before all others; None where none is for the node."""
        return next(iter(match(node, labels, [*self._named.get(node, ()), *self._rest]).highest), None)


@dataclass(frozen=True)
class ClusterDocuments:
    """What is there already."""

    namespace: str
    """Where Sublet is."""
    kccs: Sequence[Document]
    configs: Sequence[Document]
    """AdminQoSConfigurations."""
    agents: Sequence[Document]
    """DaemonSets of the other system's agent."""
    config_map: Document | None = None
    mode: NodeMode = "observe"
    """Of nodes that no config object is for."""

    @cached_property
    def targets(self) -> TargetIndex:
        """The config objects of others, read once for all nodes."""
        return TargetIndex([target for _, target in _others(self)])


def preparations(there: ClusterDocuments) -> list[ObjectChange]:
    """All that is missing, in order."""
    return [*_kind(there), *_modes(there), *_agents(there), *_suppression(there.config_map)]


def require_own_config(there: ClusterDocuments, node: str, labels: Mapping[str, str]) -> None:
    """Refuse a node that has a config object of its own: it gets one only, and ours would take its place.

    Raises:
        Conflict: names it, and what to write into it.
    """
    chosen = there.targets.of_node(node, labels)
    if chosen and not chosen.for_all:
        raise Conflict(
            f"node {node} has the AdminQoSConfiguration {chosen.key}, and gets one only; write "
            "`config.sublet.mode: enforce` into it yourself, or take the node out of its selector",
            reason="config",
        )


def require_observing(there: ClusterDocuments, node: str, labels: Mapping[str, str]) -> None:
    """Refuse to give back a node on which Sublet would enforce as soon as its label is gone.

    Raises:
        Conflict: names what says so, and what to set instead.
    """
    without = {key: value for key, value in labels.items() if key != TAKEOVER}
    chosen = there.targets.of_node(node, without)
    said = part_of(chosen.spec_config if chosen else None, "sublet").get("mode")
    if (said or there.mode) == "enforce":
        who = f"the AdminQoSConfiguration {chosen.key}" if chosen and said else "the mode of all nodes"
        raise Conflict(
            f"node {node}: without its label {TAKEOVER} {who} has Sublet enforce beside the agent that comes back; "
            f"set observe there first (helm upgrade … --set mode=observe); by {NAME}-{MODES[DONE]} nodes at {DONE} "
            "go on enforcing",
            reason="mode",
        )


def outdated_modes(there: ClusterDocuments) -> list[str]:
    """Our config objects that say something else than they would if they were made now."""
    return [one.title for one in _modes(there) if not one.creates]


def _others(there: ClusterDocuments) -> list[tuple[Document, KccTarget]]:
    """The config objects that are not ours, as far as they can be read."""
    named = [one for one in there.configs if {"uid", "name", "namespace"} <= words_of(one, "metadata").keys()]
    return [(one, target_of(one).target) for one in named if not _is_ours(one)]


def _is_ours(document: Document) -> bool:
    return words_of(document, "metadata").get("name", "").startswith(f"{NAME}-")


def _kind(there: ClusterDocuments) -> Iterator[ObjectChange]:
    entry = {"priority": PRIORITY, "keyList": [TAKEOVER]}
    found = next((one for one in there.kccs if _resource(one) == ADMIN_QOS_CONFIGS.plural), None)
    if found is None:
        group, _, version = ADMIN_QOS_CONFIGS.api_version.partition("/")
        target = {"group": group, "version": version, "resource": ADMIN_QOS_CONFIGS.plural}
        spec = {"targetType": target, "nodeLabelSelectorAllowedKeyList": [entry]}
        body = {**KCCS.head, "metadata": {"name": NAME, "namespace": there.namespace}, "spec": spec}
        yield ObjectChange(f"{KCCS.kind}/{NAME}", f"config objects may select nodes by {TAKEOVER}",
                           KCCS.collection(there.namespace), body, creates=True)  # fmt: skip
        return
    rows = [dict(row) for row in rows_of(part_of(found, "spec"), "nodeLabelSelectorAllowedKeyList")]
    if any(row.get("priority") == PRIORITY and TAKEOVER in (row.get("keyList") or ()) for row in rows):
        return
    if not rows and (key := words_of(found, "spec").get("nodeLabelSelectorKey")):  # as it was said of old
        rows = [{"priority": 0, "keyList": [key]}]
    changed = {"nodeLabelSelectorAllowedKeyList": [*rows, entry]}
    yield _patch(found, KCCS.kind, f"config objects may select nodes by {TAKEOVER}, too", KCCS.path(*_named(found)),
                 {"spec": changed})  # fmt: skip


def _resource(kcc: Document) -> str:
    return words_of(kcc, "spec", "targetType").get("resource", "")


def _modes(there: ClusterDocuments) -> Iterator[ObjectChange]:
    """One config object for each mode; what holds for all nodes stands in them, too, for a node gets one only."""
    of_all = next((one for one, target in _others(there) if target.for_all), None)
    below = copy.deepcopy(dict(part_of(of_all, "spec", "config")))
    for value, mode in MODES.items():
        name = f"{NAME}-{mode}"
        config = {**below, "sublet": {**part_of(below, "sublet"), "mode": mode}}
        spec = {"nodeLabelSelector": f"{TAKEOVER}={value}", "priority": PRIORITY, "config": config}
        found = next((one for one in there.configs if words_of(one, "metadata").get("name") == name), None)
        says = f"nodes with {TAKEOVER}={value} {mode}" + (f", beside what {_named(of_all)[0]} says" if of_all else "")
        if found is None:
            body = {**ADMIN_QOS_CONFIGS.head, "metadata": {"name": name, "namespace": there.namespace}, "spec": spec}
            yield ObjectChange(f"{ADMIN_QOS_CONFIGS.kind}/{name}", says,
                               ADMIN_QOS_CONFIGS.collection(there.namespace), body, creates=True)  # fmt: skip
        elif {key: part_of(found, "spec").get(key) for key in spec} != spec:
            yield _patch(found, ADMIN_QOS_CONFIGS.kind, says, ADMIN_QOS_CONFIGS.path(*_named(found)), {"spec": spec})


def _agents(there: ClusterDocuments) -> Iterator[ObjectChange]:
    for one in there.agents:
        affinity = part_of(one, "spec", "template", "spec", "affinity", "nodeAffinity")
        wanted = part_of(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        terms = [dict(term) for term in rows_of(wanted, "nodeSelectorTerms")] or [{}]
        kept = [_away(term) for term in terms]
        if kept == terms:
            continue
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": kept}}
        pod_spec = {"affinity": {"nodeAffinity": required}}
        name, namespace = _named(one)
        says = f"leaves nodes with {TAKEOVER}={'|'.join(AWAY)}; its own pods are replaced once, in turn"
        path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}"
        yield _patch(one, "DaemonSet", says, path, {"spec": {"template": {"spec": pod_spec}}})


def _away(term: Document) -> dict[str, Any]:
    """The term, which nodes that are handed over do not satisfy; terms stand for one another."""
    expression = {"key": TAKEOVER, "operator": "NotIn", "values": list(AWAY)}
    others = [row for row in rows_of(term, "matchExpressions") if row.get("key") != TAKEOVER]
    return {**term, "matchExpressions": [*others, expression]}


def _suppression(config_map: Document | None) -> Iterator[ObjectChange]:
    """Suppression is off for nodes that koordlet is about to leave: then it gives CPUs and quota back before.

    Not for nodes that are Sublet's: central may follow the same ConfigMap.
    """
    text = words_of(config_map, "data").get(THRESHOLDS)
    if config_map is None or text is None:
        return
    try:
        said = read_json_object(text, what=THRESHOLDS, max_bytes=MAX_KEY_BYTES)
    except Refused as refusal:
        name = words_of(config_map, "metadata").get("name")
        raise Conflict(f"ConfigMap/{name}: {refusal}; correct it first", reason="config_map") from None
    given = said.get(STRATEGIES)
    rows = list(given) if isinstance(given, list) else []
    leaving = {"key": TAKEOVER, "operator": "In", "values": [BEGUN, LEFT]}
    entry = {"name": NAME, "nodeSelector": {"matchExpressions": [leaving]}, "enable": False}  # fmt: skip
    if rows[:1] == [entry]:
        return
    others = [_apart(row) for row in rows if not isinstance(row, Mapping) or row.get("name") != NAME]
    body = {"data": {THRESHOLDS: json.dumps({**said, STRATEGIES: [entry, *others]})}}
    name, namespace = _named(config_map)
    says = f"suppression is off on nodes with {TAKEOVER}: koordlet gives back what it limited"
    yield _patch(config_map, "ConfigMap", says, f"/api/v1/namespaces/{namespace}/configmaps/{name}", body)


def _apart(strategy: object) -> object:
    """A strategy of others, which never takes a node that ours takes: webhooks refuse two for one node."""
    if not isinstance(strategy, Mapping) or not isinstance(selector := strategy.get("nodeSelector"), Mapping):
        return strategy
    staying = {"key": TAKEOVER, "operator": "NotIn", "values": [BEGUN, LEFT]}
    rows = [row for row in rows_of(selector, "matchExpressions") if row.get("key") != TAKEOVER]
    return {**strategy, "nodeSelector": {**selector, "matchExpressions": [*rows, staying]}}


def _named(document: Document) -> tuple[str, str]:
    words = words_of(document, "metadata")
    return words.get("name", ""), words.get("namespace", "")


def _patch(there: Document, kind: str, says: str, path: str, body: Mapping[str, Any]) -> ObjectChange:
    version = words_of(there, "metadata").get("resourceVersion", "")
    return ObjectChange(f"{kind}/{_named(there)[0]}", says, path, {"metadata": {"resourceVersion": version}, **body})
