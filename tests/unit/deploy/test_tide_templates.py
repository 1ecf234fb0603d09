"""What the chart says of tide pools: off, rights for their objects alone, and a kind with the fields that are read."""

import re
from pathlib import Path
from typing import Any

import yaml

from services.central.core.tide.change import CHANGE, LAST
from services.central.core.tide.marks import (
    BATCH_UNWANTED,
    POOL_LABEL,
    RESERVE_LABEL,
    SERVICES_UNWANTED,
    TIDE_LABEL,
    TYPE_LABEL,
)
from services.central.core.tide.pool import (
    POOLS,
    HourBound,
    HourSchedule,
    NodeConfigs,
    PoolSpec,
    ReserveSpec,
    Watermark,
)

CHART = Path(__file__).parents[3] / "deploy/k8s/chart"
RIGHTS = CHART / "templates/tide/rights.yaml"
LEFT_OUT = {"onlineLabel", "offlineLabel", "tideLabel"}
"""Kept by the API server so that a pool that says them can be refused."""


def test_it_is_off_and_switches_central_on_where_the_values_say_so() -> None:
    assert yaml.safe_load((CHART / "values.yaml").read_text())["tide"] == {"enabled": False}
    deployment = (CHART / "templates/central/deployment.yaml").read_text()
    assert (
        "{{- if .Values.tide.enabled }}\n            - {name: SUBLET_CENTRAL__KUBERNETES__TIDE__ENABLED," in deployment
    )
    assert RIGHTS.read_text().startswith("{{- if .Values.tide.enabled }}")


def test_the_rights_are_for_pools_alone() -> None:
    plain = "\n".join(line for line in RIGHTS.read_text().splitlines() if not line.startswith("{{"))
    role, _ = yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "1", re.sub(r"labels: \{\{.*\}\}", "labels: {}", plain)))
    found = {resource: sorted(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    assert {group for rule in role["rules"] for group in rule["apiGroups"]} == {POOLS.group}
    assert found == {POOLS.plural: ["get", "list", "patch", "watch"], f"{POOLS.plural}/status": ["patch"]}


def test_of_nodes_central_may_write_the_marks_of_pools_where_they_are_on() -> None:
    policy = (CHART / "templates/admission/node-agent.yaml").read_text()
    starts = (
        "{{ if .Values.tide.enabled }}variables.byCentral ? ['tide.katalyst.kubewharf.io/', 'tide.sublet.io/'] : []"
    )
    assert starts in policy
    usual = (POOL_LABEL, TYPE_LABEL, RESERVE_LABEL, TIDE_LABEL, BATCH_UNWANTED.key, SERVICES_UNWANTED.key, CHANGE, LAST)
    assert all(name.startswith(("tide.katalyst.kubewharf.io/", "tide.sublet.io/")) for name in usual)


def names(model: Any) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_the_kind_has_the_fields_that_are_read() -> None:
    crd = yaml.safe_load((CHART / "crds/tidenodepools.yaml").read_text())["spec"]
    assert (crd["group"], crd["names"]["plural"], crd["names"]["kind"]) == (POOLS.group, POOLS.plural, POOLS.kind)
    (version,) = crd["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert set(spec) == names(PoolSpec)
    assert set(spec["nodeConfigs"]["properties"]) == names(NodeConfigs) | LEFT_OUT
    assert set(spec["nodeConfigs"]["properties"]["reserve"]["properties"]) == names(ReserveSpec)
    assert set(spec["evictStrategy"]["properties"]["watermark"]["properties"]) == names(Watermark)
    assert set(spec["schedule"]["properties"]) == names(HourSchedule)
    assert set(spec["schedule"]["properties"]["bounds"]["items"]["properties"]) == names(HourBound)
