"""What `sublet doctor --upgrade` says of a chart: kinds, fields and values that come and go, stored versions."""

import base64
import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import cluster_case as case
import pytest

from shared.errors import Refused
from sublet.doctor.finding import Unknown
from sublet.doctor.upgrade.changes import changed_defaults, fields_gone, new_keys, refused_keys
from sublet.doctor.upgrade.chart import UpgradeChart, read_chart
from sublet.doctor.upgrade.checks import UPGRADE_CHECKS, UpgradeFacts
from sublet.doctor.upgrade.release import HelmRelease, deployed, read_release

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
CNR = "customnoderesources.node.katalyst.kubewharf.io"
Document = dict[str, Any]


@cache
def chart() -> UpgradeChart:
    """That of this checkout, by another version."""
    return replace(read_chart(CHART), version="9.0.0")


def installed(*change: Callable[[Document], None], **status: Any) -> list[Document]:
    """The kinds as the API server has them, one of them changed."""
    found = copy.deepcopy(case.kinds())
    for one in found:
        one["status"] = {"storedVersions": ["v1alpha1"]}
        if one["metadata"]["name"] == CNR:
            one["status"] |= status
            for step in change:
                step(one)
    return found


def node(version: str, ready: str | None = None) -> Document:
    named = {"propertyName": "agent_version", "propertyValues": [version]}
    conditions = [] if ready is None else [{"type": "AgentReady", "status": ready}]
    return {
        "metadata": {"name": "n"},
        "spec": {"nodeResourceProperties": [named]},
        "status": {"conditions": conditions},
    }


BARE: Document = {"metadata": {"name": "n"}}
SILENT_ON_VERSION: Document = {**BARE, "status": {"conditions": [{"type": "AgentReady", "status": "True"}]}}


def release(given: Document | None = None, defaults: Document | None = None) -> HelmRelease:
    return HelmRelease("0.1.0", dict(chart().values) if defaults is None else defaults, given or {})


def facts(**over: Any) -> UpgradeFacts:
    found: Document = {"kinds": installed(), "node_objects": [node("0.1.0")], "release": release()}
    return UpgradeFacts(chart(), **(found | over))


def _status_of(kind: Document) -> Document:
    found: Document = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    return found


def _lacks_field(kind: Document) -> None:
    del _status_of(kind)["conditions"]


def _has_more(kind: Document) -> None:
    _status_of(kind)["earlier"] = {"type": "string"}


def _not_served(kind: Document) -> None:
    kind["spec"]["versions"][0]["served"] = False


def test_an_upgrade_that_changes_nothing_is_fine_in_every_check() -> None:
    found = {name: check(facts()) for name, check in UPGRADE_CHECKS.items()}
    assert {finding.verdict for finding in found.values()} == {"ok"}
    assert found["agents"].said == "agents: 0.1.0 on 1 node; the chart is 9.0.0"
    assert found["values"].said == "0.1.0 -> 9.0.0"


@pytest.mark.parametrize(
    ("check", "over", "verdict", "said"),
    [
        ("agents", {"node_objects": [node("0.1.0"), node("9.0.0"), node("0.1.0")]}, "warning",
         "0.1.0 on 2 nodes, 9.0.0 on 1 node"),
        ("agents", {"node_objects": [node("9.0.0", "True"), node("9.0.0", "False")]}, "warning",
         "agents: 9.0.0 on 1 node, not running on 1 node"),
        ("agents", {"node_objects": [node("9.0.0", "True"), node("0.1.0", "False")]}, "warning",
         "agents: 9.0.0 on 1 node, not running on 1 node"),
        ("agents", {"node_objects": [node("9.0.0"), BARE]}, "ok", "agents: 9.0.0 on 1 node, none on 1 node"),
        ("agents", {"node_objects": [SILENT_ON_VERSION]}, "ok", "unknown on 1 node"),
        ("agents", {"node_objects": []}, "ok", "agents: none"),
        ("kinds to come", {"kinds": installed(_lacks_field)}, "warning", f"{CNR} status.conditions"),
        ("kinds to come", {"kinds": installed(_not_served)}, "warning", f"{CNR} v1alpha1"),
        ("kinds to come", {"kinds": installed()[1:]}, "warning", "the upgrade brings adminqosconfigurations"),
        ("kinds to come", {"kinds": []}, "ok", "the chart brings them"),
        ("fields to go", {"kinds": installed(_has_more)}, "warning", f"{CNR} status.earlier"),
        ("stored versions", {"kinds": installed(storedVersions=["v1alpha0", "v1alpha1"])}, "problem",
         f"{CNR} v1alpha0"),
        ("values", {"release": release({"nodes": {}, "node": {"stateDirectory": "/x"}})}, "problem",
         "refuses: nodes, node.stateDirectory"),
        ("values", {"release": release({"settings": {"qrm": {"lease": 3}}})}, "problem", "settings.qrm.lease"),
        ("values", {"release": release({"settings": {"qrm": {"lease_s": 3}}, "node": {"nodeSelector": {"a": "b"}}})},
         "ok",
         "0.1.0 -> 9.0.0"),
        ("values", {"release": None}, "not checked", "no deployed release sublet"),
    ],
)  # fmt: skip
def test_what_an_upgrade_would_change_is_named(check: str, over: Document, verdict: str, said: str) -> None:
    finding = UPGRADE_CHECKS[check](facts(**over))
    assert (finding.verdict, said in finding.said) == (verdict, True), finding
    assert bool(finding.fix) is (verdict != "ok")


def test_new_values_and_other_defaults_are_told_apart_from_what_somebody_has_set() -> None:
    defaults = copy.deepcopy(dict(chart().values))
    del defaults["tide"]
    defaults["mode"], defaults["central"]["replicas"] = "dry", 1
    finding = UPGRADE_CHECKS["values"](facts(release=release({"central": {"replicas": 3}}, defaults)))
    assert finding.verdict == "warning"
    assert finding.said == "0.1.0 -> 9.0.0; new: tide.enabled; other defaults: mode: dry -> observe"


@pytest.mark.parametrize("field", ["kinds", "node_objects", "release"])
def test_what_cannot_be_had_is_not_taken_for_good(field: str) -> None:
    checks = {"kinds": "stored versions", "node_objects": "agents", "release": "values"}
    finding = UPGRADE_CHECKS[checks[field]](facts(**{field: Unknown("you may not list them")}))
    assert (finding.verdict, finding.said) == ("not checked", "you may not list them")


def test_below_a_field_that_keeps_everything_nothing_goes() -> None:
    old = {"spec": {"versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"properties": {
        "spec": {"properties": {"a": {}}}}}}}]}}  # fmt: skip
    new = copy.deepcopy(old)
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {  # type: ignore[index]
        "x-kubernetes-preserve-unknown-fields": True
    }
    assert fields_gone(old, new) == []
    assert fields_gone(new, old) == []


def test_keys_are_compared_at_every_depth() -> None:
    inner = {"anyOf": [{"properties": {"x": {}}, "additionalProperties": False}, {"type": "null"}]}
    fields = {"a": {"$ref": "#/$defs/A"}, "b": {}}
    schema = {"properties": fields, "additionalProperties": False, "$defs": {"A": inner}}
    assert refused_keys({"a": {"x": 1, "y": 2}, "b": {"anything": 1}, "c": 3}, schema) == ["a.y", "c"]
    assert new_keys({"a": {"x": 1}}, {"a": {"x": 2, "y": {"z": 1}}, "b": {}}) == ["a.y.z", "b"]
    assert changed_defaults({"a": {"x": 1, "y": 1}}, {"a": {"x": 2, "y": 2}}, {"a": {"y": 5}}) == ["a.x: 1 -> 2"]


def packed(document: object) -> Document:
    inner = base64.b64encode(gzip.compress(json.dumps(document).encode()))
    labels = {"owner": "helm", "name": "sublet", "status": "deployed", "version": "3"}
    return {"metadata": {"labels": labels}, "data": {"release": base64.b64encode(inner).decode()}}


def test_a_release_is_read_as_helm_packs_it() -> None:
    document = {"chart": {"metadata": {"version": "0.1.0"}, "values": {"a": 1}}, "config": {"a": 2}}
    assert read_release(packed(document)) == HelmRelease("0.1.0", {"a": 1}, {"a": 2})
    assert read_release(packed({"chart": None, "config": []})) == HelmRelease("", {}, {})


def test_the_newest_deployed_revision_counts() -> None:
    secrets = [packed({}) for _ in range(3)]
    for secret, version, status in zip(secrets, ("2", "10", "11"), ("deployed", "deployed", "failed"), strict=True):
        secret["metadata"]["labels"] |= {"version": version, "status": status}
    assert deployed(secrets, "sublet") is secrets[1]
    assert deployed(secrets, "another") is None


@pytest.mark.parametrize("missing", ["Chart.yaml", "values.yaml", "values.schema.json"])
def test_a_folder_that_is_no_chart_is_refused_with_the_file_that_it_lacks(tmp_path: Path, missing: str) -> None:
    for name in {"Chart.yaml", "values.yaml", "values.schema.json"} - {missing}:
        (tmp_path / name).write_text("{}")
    with pytest.raises(Refused, match=missing):
        read_chart(tmp_path)
