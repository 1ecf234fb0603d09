"""The facts of a cluster, as its API server gives them or keeps them back."""

import asyncio
import base64
import json
from datetime import datetime
from typing import Any

import cluster_case as case

from services.central.core.profiles.profiled_pod import ProfilesInForce
from services.central.core.profiles.review import CHECK_ANNOTATION, mutate, read_review
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Document, Kube, KubeError
from shared.errors import Unavailable
from sublet.doctor.cluster.checks import CLUSTER_CHECKS
from sublet.doctor.cluster.cluster_probe import MOST_KUBELETS, KubeProbe
from sublet.doctor.cluster.facts import ClusterFacts
from sublet.doctor.finding import Unknown, examine

GROUP = "/apis/admissionregistration.k8s.io"
CHECKED = "/api/v1/namespaces/default/pods"
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"


class AtNoon(SystemClock):
    """A clock at the moment of the documents."""

    def wall(self) -> datetime:
        return case.NOW


class Server(Kube):
    """Documents by path; what is not there is not found, who is not allowed everything is allowed what is named."""

    def __init__(
        self, documents: dict[str, Document], *, allowed: tuple[str, ...] = ("*",), away: bool = False
    ) -> None:
        super().__init__()
        self.documents, self.allowed, self.away = documents, allowed, away
        self.webhook = True
        self.forbidden: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []
        self.at_once = self.most_at_once = 0

    async def call(self, method: str, path: str, *, body: Any = None, query: Any = None, **_: Any) -> Document:
        self.asked.append((method, path))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.away:
            raise Unavailable(f"{method} {path}: no answer")
        if path == CHECKED and method == "POST":
            return self.checked_pod(body, query)
        if method == "POST":
            return self.review(body)
        if path in self.forbidden:
            raise KubeError(f"{method} {path}", 403, {"message": self.forbidden[path]})
        if path not in self.documents:
            raise KubeError(f"{method} {path}", 404, {"message": "not found"})
        return self.documents[path]

    def checked_pod(self, body: dict[str, Any], query: dict[str, str]) -> Document:
        """As the API server gives a pod back that the webhook was asked about."""
        assert query == {"dryRun": "All"}
        if not self.webhook:
            return body
        request = {"uid": "r", "operation": "CREATE", "namespace": "default", "object": body, "dryRun": True}
        text = json.dumps({"kind": "AdmissionReview", "request": request}).encode()
        response = mutate(read_review(text), ProfilesInForce(()), {}).document["response"]
        (change,) = json.loads(base64.b64decode(response["patch"]))
        return {"metadata": {"annotations": {CHECK_ANNOTATION: change["value"]}}}

    def review(self, body: dict[str, Any]) -> Document:
        asked = body["spec"]["resourceAttributes"]
        words = " ".join((body["spec"].get("user", "").rpartition(":")[2], asked["verb"], asked["resource"])).strip()
        return {"status": {"allowed": "*" in self.allowed or words in self.allowed}}


def items(*documents: Document) -> Document:
    return {"metadata": {}, "items": list(documents)}


def documents() -> dict[str, Document]:
    """What an API server with Sublet in it holds."""
    good: Any = case.GOOD
    own = f"/apis/apps/v1/namespaces/{case.SYSTEM}"
    return {
        "/version": {"gitVersion": "v1.35.4"},
        GROUP: {"versions": [{"version": "v1"}, {"version": "v1beta1"}]},
        f"{GROUP}/v1": {"resources": [{"name": "validatingadmissionpolicies"}]},
        f"{GROUP}/v1beta1": {"resources": [{"name": "mutatingadmissionpolicies"}]},
        f"{GROUP}/v1/validatingadmissionpolicies": items(*map(case.named, sorted(good.policies))),
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": items(*case.kinds()),
        "/apis/apps/v1/daemonsets": items(case.agents()),
        f"{own}/deployments": items(*good.deployments),
        f"{own}/statefulsets": items(*good.stateful_sets),
        NODES: items(case.node()),
        f"{NODES}/n1/proxy/configz": {"kubeletconfig": {"cpuManagerPolicy": "none", "cgroupDriver": "systemd"}},
        "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources": items(case.node_object()),
        PODS: items(case.pod("placed", bound="n1")),
        f"/api/v1/namespaces/{case.SYSTEM}": good.own_namespace,
        f"/api/v1/namespaces/{case.SYSTEM}/secrets/sublet-bus": good.bus_passwords,
        f"/api/v1/namespaces/{case.SYSTEM}/secrets/sublet-bus-tls": good.bus_certificate,
        f"/apis/coordination.k8s.io/v1/namespaces/{case.SYSTEM}/leases/sublet-central": good.lease,
        f"/api/v1/namespaces/{case.SYSTEM}/secrets/sublet-webhook-tls": good.webhook_certificate,
        f"{GROUP}/v1/mutatingwebhookconfigurations/sublet-pod-profiles": good.webhook_configuration,
        f"/apis/discovery.k8s.io/v1/namespaces/{case.SYSTEM}/endpointslices": items(*good.webhook_endpoints),
    }


def looked_at(server: Server) -> ClusterFacts:
    return asyncio.run(KubeProbe(server, AtNoon(), "test", case.SYSTEM).facts())


def verdicts(facts: ClusterFacts) -> dict[str, str]:
    return {row.check: row.finding.verdict for row in examine("cluster", CLUSTER_CHECKS, facts)}


def test_a_cluster_with_sublet_in_it_is_ok() -> None:
    assert verdicts(looked_at(Server(documents()))) == dict.fromkeys(CLUSTER_CHECKS, "ok")


def test_nothing_is_changed() -> None:
    server = Server(documents())
    looked_at(server)
    assert {path for method, path in server.asked if method != "GET"} == {
        CHECKED,  # as a dry run
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    }


def test_a_webhook_that_the_api_server_does_not_reach_is_found_by_a_dry_run() -> None:
    server = Server(documents())
    server.webhook = False
    assert verdicts(looked_at(server))["profiles"] == "problem"


def test_without_profiles_no_pod_is_tried() -> None:
    own = f"/apis/apps/v1/namespaces/{case.SYSTEM}/deployments"
    server = Server(documents() | {own: items(case.workload("sublet-central", 2, 2))})
    assert verdicts(looked_at(server))["profiles"] == "ok"
    assert ("POST", CHECKED) not in server.asked


def test_a_webhook_for_the_config_map_alone_is_looked_for_by_its_own_configuration() -> None:
    own = f"/apis/apps/v1/namespaces/{case.SYSTEM}/deployments"
    kinds = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/sublet-pod-profiles"
    held = documents() | {own: items(case.central(), case.webhook("false"))}
    held[kinds.format("validating")] = held.pop(kinds.format("mutating"))
    server = Server(held)
    assert verdicts(looked_at(server))["profiles"] == "ok"
    assert ("POST", CHECKED) not in server.asked


def test_of_a_server_that_is_away_nothing_more_is_asked() -> None:
    server = Server({}, away=True)
    assert set(verdicts(looked_at(server)).values()) == {"problem", "not checked"}
    assert len(server.asked) == 1


def test_who_may_everything_is_asked_once_and_who_may_not_about_each_right() -> None:
    facts = looked_at(Server(documents(), allowed=("create namespaces",)))
    assert not isinstance(facts.may, Unknown)
    assert {str(right) for right, may in facts.may.items() if may} == {"create namespaces"}
    assert verdicts(facts)["your rights"] == "warning"


def test_accounts_are_asked_about_by_their_own_names() -> None:
    facts = looked_at(Server(documents(), allowed=("sublet-node get nodes",)))
    assert not isinstance(facts.accounts_may, Unknown)
    may = {
        account: [str(r) for r, allowed in rights.items() if allowed] for account, rights in facts.accounts_may.items()
    }
    assert may == {"sublet-node": ["get nodes"], "sublet-central": [], "sublet-events": [], "sublet-webhook": []}


def test_who_may_not_read_kubelets_is_not_taken_for_somebody_whose_kubelets_are_well() -> None:
    facts = looked_at(Server(documents(), allowed=("create namespaces",)))
    assert isinstance(facts.kubelets, Unknown)
    assert "nodes/proxy" in facts.kubelets.why
    assert verdicts(facts)["kubelets"] == "not checked"


def test_what_a_user_may_not_read_is_said_in_a_few_words() -> None:
    server = Server(documents())
    server.forbidden[NODES] = (
        'nodes is forbidden: User "x" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    assert looked_at(server).nodes == Unknown('you may not list resource "nodes" in API group "" at the cluster scope')


def test_of_many_nodes_the_first_kubelets_are_asked() -> None:
    names = [f"n{number:03d}" for number in range(3 * MOST_KUBELETS)]
    many = documents() | {NODES: items(*map(case.node, names))}
    server = Server(many)
    facts = looked_at(server)
    assert not isinstance(facts.kubelets, Unknown)
    assert list(facts.kubelets) == names[:MOST_KUBELETS]
    assert server.most_at_once <= 8 + 1


def test_what_is_missing_is_unknown_and_the_rest_is_told() -> None:
    for path in documents():
        if path in ("/version", PODS):  # without a version nothing is asked; the chart's scheduler is there anyway
            continue
        fewer = documents()
        del fewer[path]
        found = verdicts(looked_at(Server(fewer)))
        assert found["API server"] == "ok"
        assert set(found.values()) != {"ok"}, path
