"""Every check of a cluster: a good one, each thing that can be wrong, and what cannot be known."""

import copy
from dataclasses import fields, replace
from typing import Any

import cluster_case as case
import pytest
from cluster_case import GOOD, LONG_AGO, MAY

from sublet.doctor.cluster.checks import CLUSTER_CHECKS, INSTALLED_CHECKS
from sublet.doctor.cluster.facts import ClusterFacts
from sublet.doctor.cluster.rights import BIND, ESCALATE, Right, of_account, to_hand_on, to_install
from sublet.doctor.finding import Unknown, demanded, examine, has_problem

INSTALL = to_install(case.SYSTEM, profiles=False, slo=None)
FIRST = INSTALL[0]
HANDED_ON = next(right for right in to_hand_on(case.SYSTEM, profiles=False, slo=None) if right not in INSTALL)
STATUS = Right("patch", "config.koordinator.sh", "clustercolocationprofiles/status")
NODE_SLOS = Right("delete", "slo.koordinator.sh", "nodeslos")
SLO_ROLES = Right("create", "rbac.authorization.k8s.io", "roles", case.SLO.namespace)
TOLD = ("server", "namespace", "now")
EVICT = Right("create", "", "pods/eviction")
CENTRAL, EVENTS = case.workload("sublet-central"), case.workload("sublet-events")


def without(*rights: Right) -> dict[Right, bool]:
    return MAY | dict.fromkeys(rights, False)


def kinds_without(field: str) -> list[dict[str, Any]]:
    """The node objects' kind as it was before a field was added."""
    found = copy.deepcopy(case.kinds())
    kind = next(one for one in found if one["spec"]["names"]["plural"] == "customnoderesources")
    part, name = field.split(".")
    del kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]["properties"][name]
    return found


def kinds_served_as(**change: Any) -> list[dict[str, Any]]:
    found = copy.deepcopy(case.kinds())
    found[0]["spec"]["versions"][0] |= change
    return found


def koordlet(**container: str) -> dict[str, Any]:
    return case.named("agent", "colocation", spec={"template": {"spec": {"containers": [container]}}})


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("bus passwords", {"bus_passwords": None}, "problem", "secrets.sh"),
    ("bus passwords", {"bus_passwords": case.secret(central="demo-central", bridge="q" * 32)}, "problem",
     "password of central"),
    ("bus passwords", {"bus_passwords": case.secret(central="p" * 32, routes="short")}, "problem", "of routes"),
    ("bus passwords", {"bus_passwords": case.named("s", data={"central": "%"})}, "problem", "rotate"),
    ("bus encryption", {"bus_certificate": None}, "warning", "bus.tls=true"),
    ("bus encryption", {"bus_certificate": case.secret(renew_at="1700000000")}, "warning", "since 2023-11-14"),
    ("API server", {"version": Unknown("no answer")}, "problem", "--kubeconfig"),
    ("API server", {"version": {"gitVersion": "v1.29.9"}}, "problem", "1.30 or newer"),
    ("API server", {"version": {"gitVersion": "v1.36.0+k3s1"}}, "warning", "newer than 1.35"),
    ("API server", {"version": {"gitVersion": "unknown"}}, "not checked", "says no version"),
    ("your rights", {"may": without(FIRST)}, "warning", f"you may not {FIRST}"),
    ("your rights", {"may": without(FIRST), "daemon_sets": []}, "problem", f"you may not {FIRST}"),
    ("your rights", {"may": without(HANDED_ON, ESCALATE)}, "problem", f"{HANDED_ON}"),
    ("your rights", {"may": without(BIND)}, "warning", "scheduler.enabled=false"),
    ("validating policies", {"admission": {"v1": frozenset()}}, "problem", "1.30"),
    ("validating policies", {"policies": frozenset({"sublet-pod-qos"})}, "problem", "sublet-node-agent-own-node"),
    ("mutating policies", {"admission": {"v1": frozenset({"validatingadmissionpolicies"})}}, "warning",
     "resource.katalyst.kubewharf.io"),
    ("nodes", {"nodes": [case.node(system="windows")]}, "problem", "no Linux node"),
    ("nodes", {"nodes": [case.node(version="v1.28.3")]}, "warning", "n1 v1.28.3"),
    ("nodes", {"nodes": [case.node(version="?")]}, "warning", "n1 ?"),
    ("kubelets", {"kubelets": {"n1": {"cpuManagerPolicy": "static"}, "n2": {}}}, "warning", "static, on n1"),
    ("kubelets", {"kubelets": {"n1": Unknown("502")}}, "not checked", "n1: 502"),
    ("kubelets", {"kubelets": Unknown("you may not")}, "not checked", "doctor --node"),
    ("other systems", {"daemon_sets": [koordlet(name="a", image="r/koordlet:v1")]}, "problem", "colocation/agent"),
    ("other systems", {"daemon_sets": [koordlet(name="katalyst-agent", image="x")]}, "problem", "colocation/agent"),
    ("other writers", {"nodes": [case.node(writer="koord-manager")]}, "problem", "koord-manager on n1"),
    ("other writers", {"nodes": [case.node(writer="OpenAPI-Generator")]}, "problem", "OpenAPI-Generator on n1"),
    ("other writers", {"daemon_sets": []}, "warning", "sublet uninstall --kubernetes"),
    ("namespace", {"own_namespace": None}, "warning", "kubectl create namespace sublet-system"),
    ("namespace", {"own_namespace": case.namespace(security="privileged")}, "problem",
     "sublet.io/system-cores=allowed"),
    ("namespace", {"own_namespace": case.namespace(system_cores="allowed", security="baseline")}, "problem",
     "hostPath"),
    ("namespace", {"own_namespace": case.namespace(system_cores="allowed")}, "warning", "enforce=privileged"),
    ("kinds", {"kinds": case.kinds()[1:]}, "problem", "kubectl apply --server-side --force-conflicts -k"),
    ("kinds", {"kinds": kinds_without("status.nodeMetricStatus")}, "problem", "does not know status.nodeMetricStatus"),
    ("kinds", {"kinds": kinds_served_as(served=False)}, "problem", "does not serve v1alpha1"),
    ("kinds", {"kinds": kinds_served_as(subresources={})}, "problem", "no status subresource"),
    ("kinds", {"kinds": [], "daemon_sets": []}, "not checked", "the chart brings them"),
    ("agents", {"daemon_sets": [case.agents(3, 2)]}, "problem", "2 of 3"),
    ("agents", {"daemon_sets": [case.agents(0, 0)]}, "warning", "node.nodeSelector"),
    ("agents", {"daemon_sets": []}, "not checked", "not installed"),
    ("agents' rights", {"accounts_may": {"sublet-node": {EVICT: False}}}, "problem",
     "sublet-node may not create pods/eviction"),
    ("agents' rights", {"accounts_may": Unknown("forbidden")}, "not checked", "subjectaccessreviews"),
    ("node objects", {"node_objects": []}, "problem", "0 CustomNodeResources for 1 agent"),
    ("node objects", {"node_objects": [case.node_object(ready="False", message="qrm: dead")]}, "problem",
     "n1: qrm: dead"),
    ("node objects", {"node_objects": [case.named("n1", status={})]}, "problem", "says nothing"),
    ("central", {"deployments": [EVENTS]}, "problem", "Deployment sublet-central is not there"),
    ("central", {"deployments": [case.workload("sublet-central", 2, 0)]}, "problem", "no pod"),
    ("central", {"deployments": [case.workload("sublet-central", 2, 1)]}, "warning", "1 of 2"),
    ("central", {"lease": None}, "problem", "nobody holds"),
    ("central", {"lease": case.named("x", spec={"holderIdentity": "c", "renewTime": LONG_AGO})}, "problem",
     "1800 s ago"),
    ("bus", {"stateful_sets": []}, "problem", "StatefulSet sublet-bus is not there"),
    ("bus", {"stateful_sets": [case.workload("sublet-bus", 3, 2)]}, "warning", "2 of 3"),
    ("bus", {"stateful_sets": [case.workload("sublet-bus")]}, "warning", "bus.storage"),
    ("events", {"deployments": [CENTRAL, case.workload("sublet-events", 1, 0)]}, "problem", "no pod"),
    ("scheduler", {"deployments": [case.workload("sublet-scheduler", 1, 0)]}, "problem", "not ready"),
    ("scheduler", {"deployments": [], "scheduled_by_name": [case.pod("waits")]}, "problem", "default/waits"),
    ("scheduler", {"deployments": [], "scheduled_by_name": []}, "not checked", "no pod names"),
    ("scheduler", {"deployments": [], "scheduled_by_name": [case.pod("waits", scheduler="koord-scheduler")]}, "problem",
     "nobody schedules the pods of koord-scheduler: default/waits"),
    ("scheduler", {"scheduled_by_name": [case.pod("placed", bound="n1"),
                                         case.pod("waits", scheduler="koord-scheduler")]}, "problem",
     "the pods of koord-scheduler: default/waits"),
    ("scheduler", {"scheduled_by_name": [case.asking("job", "kubernetes.io/batch-cpu")]}, "warning",
     "default/job waits for kubernetes.io/batch-cpu, which no node offers"),
    ("scheduler", {"scheduled_by_name": [case.asking("job", "koordinator.sh/batch-memory")]}, "warning",
     "waits for koordinator.sh/batch-memory"),
    ("scheduler", {"scheduled_by_name": [case.asking("job", "kubernetes.io/mid-cpu")]}, "warning",
     "waits for kubernetes.io/mid-cpu"),
    ("your rights", {"may": without(STATUS, ESCALATE)}, "problem", "clustercolocationprofiles/status"),
    ("your rights", {"may": without(NODE_SLOS, ESCALATE)}, "problem", "nodeslos"),
    ("your rights", {"may": without(SLO_ROLES)}, "warning", "in koordinator-system"),
    ("profiles", {"webhook_endpoints": []}, "problem", "no endpoint that is ready"),
    ("profiles", {"webhook_endpoints": [case.named("s", endpoints=[{"conditions": {"ready": False}}])]}, "problem",
     "created without their profiles"),
    ("profiles", {"webhook_answers": False}, "problem", "firewalls"),
    ("profiles", {"webhook_answers": Unknown("you may not create pods")}, "not checked", "may create pods"),
    ("profiles", {"webhook_configuration": None}, "problem", "--set profiles.enabled=true"),
    ("profiles", {"webhook_certificate": None}, "problem", "nobody makes one"),
    ("profiles", {"deployments": [case.central()]}, "problem", "a faulty ConfigMap is stored as it is"),
    ("profiles", {"deployments": [case.central(), case.webhook("false")], "webhook_configuration": None}, "problem",
     "ValidatingWebhookConfiguration sublet-pod-profiles is not there: a faulty ConfigMap is stored as it is"),
    ("profiles", {"deployments": [case.central(), case.webhook("false")], "webhook_endpoints": []}, "problem",
     "no endpoint that is ready: a faulty ConfigMap is stored as it is"),
    ("profiles", {"webhook_certificate": case.named("s", data={"ca.crt": "no base64"})}, "problem", "nobody makes one"),
    ("profiles", {"webhook_configuration": case.webhook_trusting("another")}, "problem", "does not trust"),
    ("profiles", {"webhook_configuration": case.named("c", webhooks=[])}, "problem", "does not trust"),
]  # fmt: skip
GOOD_AS_WELL: list[tuple[str, dict[str, Any]]] = [
    ("API server", {"version": {"gitVersion": "v1.30.0-eks-abc"}}),
    ("your rights", {"may": without(HANDED_ON)}),
    ("kinds", {"kinds": [*case.kinds(), case.named("others.example.org")]}),
    ("other writers", {"nodes": [case.node()], "daemon_sets": []}),
    ("events", {"deployments": [CENTRAL]}),
    ("scheduler", {"deployments": []}),
    ("profiles", {"deployments": [case.central(slo="false")], "webhook_certificate": None}),
    ("profiles", {"deployments": [case.central(), case.webhook("false")], "webhook_answers": False}),
    ("your rights", {"deployments": [CENTRAL], "may": without(STATUS, ESCALATE)}),
    ("your rights", {"deployments": [case.central(slo="false")], "may": without(NODE_SLOS, SLO_ROLES, ESCALATE)}),
    ("scheduler", {"scheduled_by_name": [case.pod("young", made=case.JUST_NOW), case.pod("full", looked_at=True)]}),
    (
        "scheduler",
        {
            "scheduled_by_name": [case.asking("full", "kubernetes.io/batch-cpu")],
            "nodes": [{**case.node(), "status": {"allocatable": {"kubernetes.io/batch-cpu": "0"}}}],
        },
    ),
    ("scheduler", {"scheduled_by_name": [case.asking("gpu", "nvidia.com/gpu")]}),
    ("validating policies", {"policies": frozenset(), "daemon_sets": []}),
]


def test_a_good_cluster_is_ok_in_every_respect() -> None:
    rows = examine("cluster", CLUSTER_CHECKS, GOOD)
    assert [row for row in rows if row.finding.verdict != "ok"] == []


@pytest.mark.parametrize(("check", "change"), GOOD_AS_WELL)
def test_what_is_good_as_well(check: str, change: dict[str, Any]) -> None:
    assert CLUSTER_CHECKS[check](replace(GOOD, **change)).verdict == "ok"


@pytest.mark.parametrize(("check", "change", "verdict", "words"), WRONG)
def test_what_is_wrong_is_said_with_what_to_do(check: str, change: dict[str, Any], verdict: str, words: str) -> None:
    finding = CLUSTER_CHECKS[check](replace(GOOD, **change))
    assert finding.verdict == verdict
    assert words in f"{finding.said} -> {finding.fix}"
    assert finding.fix or verdict == "not checked"
    assert "\n" not in finding.said + finding.fix


def test_every_check_is_made_to_fail_once() -> None:
    assert {check for check, *_ in WRONG} == set(CLUSTER_CHECKS)


@pytest.mark.parametrize(("check", "change", "verdict", "words"), WRONG)
def test_what_is_not_known_is_never_ok(check: str, change: dict[str, Any], verdict: str, words: str) -> None:
    hidden: dict[str, Any] = {name: Unknown("hidden") for name in change}
    assert CLUSTER_CHECKS[check](replace(GOOD, **hidden)).verdict != "ok"


def test_of_a_cluster_of_which_nothing_is_known_nothing_is_ok() -> None:
    hidden: dict[str, Any] = {one.name: Unknown("hidden") for one in fields(GOOD) if one.name not in TOLD}
    blank = replace(GOOD, **hidden)
    rows = examine("cluster", CLUSTER_CHECKS, blank)
    assert {row.check: row.finding.verdict for row in rows} == dict.fromkeys(CLUSTER_CHECKS, "not checked") | {
        "API server": "problem"
    }


def test_before_an_installation_nothing_but_the_namespace_is_asked_for() -> None:
    nothing: dict[str, Any] = {name: [] for name in ("kinds", "daemon_sets", "deployments", "stateful_sets")}
    nothing |= {"nodes": [case.node()], "scheduled_by_name": [], "policies": frozenset()}
    nothing |= {"own_namespace": None, "lease": None, "node_objects": Unknown("no such kind")}
    bare = replace(GOOD, **nothing)
    rows = examine("cluster", CLUSTER_CHECKS, bare)
    assert {row.check for row in rows if row.finding.verdict not in ("ok", "not checked")} == {"namespace"}
    assert "not installed" in next(row.finding.said for row in rows if row.check == "node objects")


@pytest.mark.parametrize("account", case.ACCOUNTS)
def test_each_right_of_each_account_is_missed(account: str) -> None:
    for right in of_account(account, case.SYSTEM, profiles=True, slo=case.SLO):
        facts: ClusterFacts = replace(GOOD, accounts_may={account: {right: False}})
        assert CLUSTER_CHECKS["agents' rights"](facts).verdict == "problem"


def test_where_it_is_not_known_whether_sublet_is_installed_nothing_is_said_to_be_absent_or_left_over() -> None:
    facts = replace(GOOD, daemon_sets=Unknown("you may not list"), node_objects=Unknown("no such kind"))
    for check in ("agents", "agents' rights", "node objects", "other systems", "other writers", "validating policies"):
        finding = CLUSTER_CHECKS[check](facts)
        assert (finding.verdict, finding.said) == ("not checked", "you may not list"), check


def test_an_installation_is_asked_for_what_the_charts_test_may_see_and_what_it_may_not_see_is_a_problem() -> None:
    rows = demanded(examine("cluster", INSTALLED_CHECKS, GOOD))
    assert {row.check: row.finding.verdict for row in rows} == dict.fromkeys(INSTALLED_CHECKS, "ok")
    hidden = replace(GOOD, lease=Unknown("you may not get leases"))
    assert {row.check: row.finding.said for row in demanded(examine("cluster", INSTALLED_CHECKS, hidden))}[
        "central"
    ] == "not checked: you may not get leases"
    assert has_problem(demanded(examine("cluster", INSTALLED_CHECKS, hidden)))
