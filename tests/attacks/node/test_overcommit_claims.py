"""A node that wants to be larger than it is, by what may be written on it: the webhook always answers, and never with
an amount that the API server would refuse, for a kubelet whose status is refused loses its node."""

import base64
import json
from typing import Any

import pytest
from odd_documents import odd_documents, odd_texts

from services.central.core.overcommit.config_documents import OvercommitLimits, overcommit_config_of
from services.central.core.overcommit.config_status import MOST_MESSAGE, ConfigStanding, status_due
from services.central.core.overcommit.node_documents import MOST, overcommit_node
from services.central.core.overcommit.node_plan import figures_to_write, node_plan
from services.central.core.overcommit.node_report import node_report_of
from services.central.overcommit.answers import NodeStatusAnswers
from shared.adapters.clock import SystemClock
from shared.contracts.kube.overcommit import DOMAIN, MOST_RATIO, RESOURCES
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.errors import Refused

AMOUNTS = {"cpu": "4", "memory": "8Gi"}
CLAIMS = {f"{DOMAIN}/{name}": "2" for name in ("cpu_overcommit_ratio", "realtime_cpu_overcommit_ratio")}
CLAIMS |= {
    f"{DOMAIN}/{sort}_{field}_cpu": "4" for sort in ("original", "overcommit") for field in ("allocatable", "capacity")
}
NODE = {"metadata": {"name": "n", "annotations": CLAIMS, "labels": {f"{DOMAIN}/overcommit_node_pool": "p"}},
        "status": {"allocatable": AMOUNTS, "capacity": AMOUNTS}}  # fmt: skip
WHO = {"uid": "u", "operation": "UPDATE", "subResource": "status", "userInfo": {"username": "system:node:n"}}
REVIEW = {"kind": "AdmissionReview", "request": {**WHO, "object": NODE, "oldObject": NODE}}
REPORT = {"metadata": {"name": "n", "annotations": {**CLAIMS, f"{DOMAIN}/guaranteed_cpus": "2"}},
          "status": {"conditions": [{"type": "Withdrawn", "status": "False"}]}}  # fmt: skip
CONFIG = {"metadata": {"name": "c", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
          "spec": {"nodeOvercommitSelectorVal": "p", "resourceOvercommitRatio": {"cpu": "2"}},
          "status": {"matchedNodeList": ["n"], "conditions": [{"type": "Valid", "status": "True"}]}}  # fmt: skip
LIMITS = OvercommitLimits(dict.fromkeys(RESOURCES, 4.0))


def patched(text: bytes) -> list[dict[str, Any]]:
    reply = NodeStatusAnswers(SystemClock()).answer(text)
    if reply.status == 400:
        return []
    response = json.loads(reply.body)["response"]
    assert (reply.status, response["allowed"]) == (200, True)
    found: list[dict[str, Any]] = json.loads(base64.b64decode(response.get("patch", "W10=")))
    return found


def amount(operation: dict[str, Any]) -> int:
    cpu = operation["path"].endswith("cpu")
    found = parse_millis(operation["value"]) if cpu else parse_units(operation["value"])
    assert 0 <= found <= MOST["cpu" if cpu else "memory"] * MOST_RATIO
    return found


def test_whatever_a_review_holds_the_amounts_are_amounts() -> None:
    for _, text in odd_texts([REVIEW], 1500, seed=19):
        for operation in patched(text):
            amount(operation)


@pytest.mark.parametrize("claim", ["11", "1e300", "1e999", "inf", "nan", "-3", "0", "", "9" * 400, "2\n"])
def test_a_node_that_sells_itself_too_often_shows_what_kubelet_says(claim: str) -> None:
    annotations = {f"{DOMAIN}/cpu_overcommit_ratio": claim}
    node = {"metadata": {"name": "n", "annotations": annotations}, "status": NODE["status"]}
    asked = {"kind": "AdmissionReview", "request": {**WHO, "object": node}}
    assert not [one for one in patched(json.dumps(asked).encode()) if one["path"].startswith("/status")]


def test_figures_that_somebody_wrote_beside_a_ratio_are_bounded_as_well() -> None:
    annotations = {
        **CLAIMS,
        f"{DOMAIN}/overcommit_allocatable_cpu": "4000",
        f"{DOMAIN}/overcommit_capacity_cpu": "4000",
    }
    node = {"metadata": {"name": "n", "annotations": annotations}, "status": NODE["status"]}
    asked = {"kind": "AdmissionReview", "request": {**WHO, "object": node}}
    shown = [one for one in patched(json.dumps(asked).encode()) if one["path"].startswith("/status")]
    assert {one["value"] for one in shown} == {"8"}


def test_odd_nodes_reports_and_configs_make_plans_within_bounds() -> None:
    odd = zip(*(odd_documents([good], 600, seed) for seed, good in enumerate((NODE, REPORT, CONFIG))), strict=True)
    for (_, node), (_, report), (_, config) in odd:
        try:
            read = overcommit_config_of(config)
        except Refused:
            continue
        refusal = read.refusal(LIMITS)
        seen = overcommit_node(node)
        plan = node_plan(seen, None if refusal else read, node_report_of(report), LIMITS, unheard=False)
        assert all(1 <= ratio <= 4 for ratio in plan.ratios.values())
        for name, amounts in figures_to_write(seen, plan).items():
            assert 0 <= amounts.allocatable <= 4 * MOST[name]
        status = status_due(read, ConfigStanding(refusal, read.name, {}), SystemClock().wall())
        for condition in (status or {}).get("conditions", []):
            assert len(str(condition.get("message", ""))) <= max(MOST_MESSAGE, 5000)
        json.dumps(status, allow_nan=True)
