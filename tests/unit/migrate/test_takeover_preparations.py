"""What a cluster needs before its first node is handed over, as the ones who read it understand it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from handover_world import config_map, daemon_set
from jsonschema import Draft202012Validator

from services.central.core.kcc.match import match
from services.central.core.kcc.targets import check_target, keys_by_priority
from services.central.core.rollout.config_documents import kcc_of, target_of
from services.central.core.slo.config_map import read_slo_config
from services.central.core.slo.effective import effective_slo
from services.central.core.slo.keys import SloKey
from shared.errors import Conflict
from sublet.migrate.labels import BACK, BEGUN, DONE, LEFT, TAKEOVER
from sublet.migrate.takeover.preparations import (
    PRIORITY,
    ClusterDocuments,
    ObjectChange,
    preparations,
    require_observing,
    require_own_config,
)

CRDS = Path(__file__).parents[3] / "deploy/k8s/crds"
KEY: SloKey = "resource-threshold-config"


def there(kccs: Any = (), configs: Any = (), agents: Any = (), slo: dict[str, Any] | None = None) -> ClusterDocuments:
    return ClusterDocuments("sublet-system", kccs, configs, agents, slo)


def change(found: list[ObjectChange], title: str) -> ObjectChange:
    return next(one for one in found if one.title == title)


def config(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "kube-system", "uid": name, "resourceVersion": "5"}, "spec": spec}


def kcc(spec: dict[str, Any]) -> dict[str, Any]:
    group, version = "config.katalyst.kubewharf.io", "v1alpha1"
    target = {"group": group, "version": version, "resource": "adminqosconfigurations"}
    return config("aqc", {"targetType": target, **spec})


@pytest.mark.parametrize(
    ("kccs", "before"),
    [
        ([], {}),
        ([kcc({})], {}),
        ([kcc({"nodeLabelSelectorAllowedKeyList": [{"priority": 3, "keyList": ["pool"]}]})], {3: ["pool"]}),
        ([kcc({"nodeLabelSelectorKey": "pool"})], {0: ["pool"]}),
    ],
)
def test_central_takes_our_config_objects_and_gives_each_node_its_mode(
    kccs: list[dict[str, Any]], before: dict[int, list[str]]
) -> None:
    found = preparations(there(kccs))
    kind = found[0].body["spec"] if not kccs else {**kccs[0]["spec"], **found[0].body["spec"]}
    meta = {"metadata": {"name": "k", "namespace": "x"}}
    allowed = keys_by_priority(kcc_of({**meta, "spec": kind}).kcc.allowed_keys)
    assert allowed == {**before, PRIORITY: [TAKEOVER]}
    made = [one for one in found if one.title.startswith("AdminQoS")]
    targets = [target_of({**one.body, "metadata": {**one.body["metadata"], "uid": "u"}}) for one in made]
    others = target_of(config("hot", {"nodeLabelSelector": "pool=hot", "priority": 3, "config": {}})).target
    for seen in targets:
        assert seen.problem == ""
        check_target(seen.target, allowed, [one.target for one in targets])
    modes = {}
    for label in (BEGUN, LEFT, DONE, BACK):
        labels = {TAKEOVER: label, "pool": "hot"}
        chosen = match("n1", labels, [others, *(one.target for one in targets)]).selected()
        modes[label] = (chosen.spec_config or {}).get("sublet", {}).get("mode")
    assert modes == {BEGUN: None, LEFT: None, DONE: "enforce", BACK: "observe"}


@pytest.mark.parametrize(
    ("title", "file"),
    [
        ("KatalystCustomConfig/sublet-takeover", "katalystcustomconfigs"),
        ("AdminQoSConfiguration/sublet-takeover-enforce", "adminqosconfigurations"),
        ("AdminQoSConfiguration/sublet-takeover-observe", "adminqosconfigurations"),
    ],
)
def test_the_kinds_take_our_objects(title: str, file: str) -> None:
    (version,) = yaml.safe_load((CRDS / f"{file}.yaml").read_text())["spec"]["versions"]
    validator = Draft202012Validator(version["schema"]["openAPIV3Schema"])
    body = change(preparations(there()), title).body
    assert [error.message for error in validator.iter_errors(body)] == []
    assert list(validator.iter_errors({**body, "spec": {**body["spec"], "nodeLabelSelector": 3, "targetType": 3}}))


def test_what_holds_for_all_nodes_goes_on_to_hold_there() -> None:
    eviction = {"evictionConfig": {"cpuPressureEvictionConfig": {"enableLoadEviction": True}}}
    found = preparations(there(configs=[config("all", {"config": eviction})]))
    body = change(found, "AdminQoSConfiguration/sublet-takeover-enforce").body
    assert body["spec"]["config"] == {**eviction, "sublet": {"mode": "enforce"}}


def test_a_node_is_given_back_where_it_then_observes() -> None:
    labels = {TAKEOVER: DONE, "pool": "hot"}
    hot = config("hot", {"nodeLabelSelector": "pool=hot", "config": {"sublet": {"mode": "enforce"}}})
    with pytest.raises(Conflict, match="the AdminQoSConfiguration kube-system/hot has Sublet enforce beside the agent"):
        require_observing(there(configs=[hot]), "n1", labels)
    require_observing(there(configs=[hot]), "n1", {TAKEOVER: DONE})
    enforcing = replace(there(), mode="enforce")
    with pytest.raises(Conflict, match=r"the mode of all nodes .* by sublet-takeover-enforce nodes at done go"):
        require_observing(enforcing, "n1", labels)
    everywhere = config("all", {"config": {"sublet": {"mode": "observe"}}})
    require_observing(replace(enforcing, configs=[everywhere]), "n1", labels)


def test_a_node_with_a_config_object_of_its_own_is_refused_and_objects_are_read_once_for_all_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"n{number}" for number in range(40)]
    ephemeral = {"lastDuration": "1h"}
    own = [config(f"c-{name}", {"ephemeralSelector": {**ephemeral, "nodeNames": [name]}}) for name in names]
    hot = config("hot", {"nodeLabelSelector": "pool=hot"})
    gone = config("gone", {"ephemeralSelector": {**ephemeral, "nodeNames": ["free"]}})
    gone["metadata"]["deletionTimestamp"] = "2026-11-22T00:00:00Z"
    read, compared = list[str](), list[int]()

    def counting(document: dict[str, Any]) -> Any:
        read.append(document["metadata"]["name"])
        return target_of(document)

    def measured(node: str, labels: dict[str, str], targets: Any) -> Any:
        compared.append(len(targets))
        return match(node, labels, targets)

    monkeypatch.setattr("sublet.migrate.takeover.preparations.target_of", counting)
    monkeypatch.setattr("sublet.migrate.takeover.preparations.match", measured)
    cluster = there(configs=[*own, hot, gone])
    for name in names:
        with pytest.raises(Conflict, match=f"node {name} has the AdminQoSConfiguration kube-system/c-{name}, and"):
            require_own_config(cluster, name, {})
    require_own_config(cluster, "free", {"pool": "cold"})
    with pytest.raises(Conflict, match="kube-system/hot"):
        require_own_config(cluster, "free", {"pool": "hot"})
    assert len(read) == len(names) + 2
    assert max(compared) == 2


def test_nothing_is_changed_twice() -> None:
    first = preparations(there(agents=[daemon_set()], slo=config_map()))
    made = [{**one.body, "metadata": {**one.body["metadata"], "uid": one.title}} for one in first[:3]]
    agent, slo = daemon_set(), config_map()
    agent["spec"] = change(first, "DaemonSet/koordlet").body["spec"]
    slo["data"] = change(first, "ConfigMap/slo-controller-config").body["data"]
    assert preparations(there(made[:1], made[1:], [agent], slo)) == []


def term(*rows: tuple[str, str]) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator} for key, operator in rows]}


@pytest.mark.parametrize("terms", [[], [term(("a", "Exists"))], [term(("a", "Exists")), term(("b", "DoesNotExist"))]])
def test_the_other_agent_keeps_where_it_runs_and_leaves_what_is_handed_over(terms: list[dict[str, Any]]) -> None:
    agent = daemon_set()
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    agent["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required} if terms else {}
    body = change(preparations(there(agents=[agent])), "DaemonSet/koordlet").body
    assert body["metadata"] == {"resourceVersion": "7"}
    affinity = body["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    changed = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    ours = {"key": TAKEOVER, "operator": "NotIn", "values": [LEFT, DONE, BACK]}
    given = [one["matchExpressions"] for one in terms] or [[]]
    assert [one["matchExpressions"] for one in changed] == [[*rows, ours] for rows in given]


def test_suppression_ends_on_handed_over_nodes_alone() -> None:
    said = {
        "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60},
        "nodeStrategies": [
            {"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}}, "cpuSuppressThresholdPercent": 50}
        ],
    }
    body = change(preparations(there(slo=config_map(json.dumps(said)))), "ConfigMap/slo-controller-config").body
    read = read_slo_config(body["data"])
    assert read.problems == ()  # no two strategies can take the same node, which webhooks refuse
    config = read.config

    def holds(**labels: str) -> tuple[bool, int]:
        strategy = effective_slo(config, labels)[KEY].strategy
        return strategy["enable"], strategy["cpuSuppressThresholdPercent"]

    assert (holds(), holds(pool="hot")) == ((True, 60), (True, 50))
    on = {label: holds(pool="hot", **{TAKEOVER: label})[0] for label in (BEGUN, LEFT, DONE, BACK)}
    assert on == {BEGUN: False, LEFT: False, DONE: True, BACK: True}  # central may follow the same ConfigMap


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN}', "[" * 5000])
def test_a_config_map_that_cannot_be_read_is_not_written(text: str) -> None:
    with pytest.raises(Conflict, match=r"ConfigMap/slo-controller-config: resource-threshold-config.*; correct it"):
        preparations(there(slo=config_map(text)))
