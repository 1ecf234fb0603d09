"""The gate with which pods are created that ask for reclaimed resources: which get it, and what else they keep."""

import json
from base64 import b64decode
from typing import Any

import pytest

from services.central.core.profiles.capacity_gate import GATE, gates_of, reclaimed_asked, with_gate
from services.central.core.profiles.profiled_pod import ProfilesInForce
from services.central.core.profiles.review import mutate, read_review
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.errors import Refused

GATED = ProfilesInForce((), gated=True)


def pod(*requests: dict[str, str], **spec: Any) -> dict[str, Any]:
    containers = [{"name": f"c{place}", "resources": {"requests": one}} for place, one in enumerate(requests)]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers} | spec}


RECLAIMED = pod({RECLAIMED_CPU: "500"})
OTHER = {"name": "example.org/quota"}


@pytest.mark.parametrize(
    ("document", "gates"),
    [
        pytest.param(RECLAIMED, (GATE,), id="it asks for reclaimed CPU"),
        pytest.param(pod({"katalyst.kubewharf.io/reclaimed_memory": "1Gi"}), (GATE,), id="by the older name"),
        pytest.param(pod({"kubernetes.io/batch-cpu": "1k"}), (GATE,), id="in Koordinator's words"),
        pytest.param(
            pod({}, initContainers=[{"resources": {"requests": {RECLAIMED_CPU: 1}}}]), (GATE,), id="to start with"
        ),
        pytest.param(pod({RECLAIMED_CPU: "5"}, schedulingGates=[OTHER]), (OTHER["name"], GATE), id="beside another's"),
        pytest.param(pod({RECLAIMED_CPU: "5"}, schedulingGates=[{"name": GATE}]), (GATE,), id="it has it already"),
        pytest.param(pod({"cpu": "4", "memory": "4Gi"}), (), id="a tenant"),
        pytest.param(pod({RECLAIMED_CPU: "0"}), (), id="a request of nothing"),
        pytest.param(pod({RECLAIMED_CPU: "5"}, nodeName="n1"), (), id="it has its node"),
        pytest.param(
            RECLAIMED | {"metadata": {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]}}, (),
            id="a DaemonSet's",
        ),
    ],
)  # fmt: skip
def test_pods_that_take_of_the_offer_and_are_to_be_placed_wait_behind_the_gate(
    document: dict[str, Any], gates: tuple[str, ...]
) -> None:
    before = json.dumps(document)
    assert gates_of(with_gate(document)) == gates
    assert json.dumps(document) == before, "what the caller has is left as it is"


def test_what_is_asked_for_is_one_account_whatever_its_names() -> None:
    found = reclaimed_asked(pod({RECLAIMED_CPU: "1k", "kubernetes.io/batch-cpu": "200", RECLAIMED_MEMORY: "1Ki"}))
    assert found == {RECLAIMED_CPU: 1200, RECLAIMED_MEMORY: 1024}


def reviewed(document: Any, rules: ProfilesInForce, operation: str = "CREATE") -> Any:
    request = {"uid": "u", "operation": operation, "namespace": "batch", "object": document}
    text = json.dumps({"kind": "AdmissionReview", "request": request}).encode()
    response = mutate(read_review(text), rules, {}).document["response"]
    assert response["allowed"]
    return json.loads(b64decode(response["patch"])) if "patch" in response else None


def test_the_webhook_adds_the_gate_where_it_is_switched_on_and_as_a_pod_is_created_alone() -> None:
    added = {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]}
    assert reviewed(RECLAIMED, GATED) == [added]
    assert reviewed(RECLAIMED, ProfilesInForce(())) is None
    assert reviewed(RECLAIMED, GATED, "UPDATE") is None, "no gate can be added later"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(RECLAIMED | {"spec": {"schedulingGates": 5}}, id="gates that are no list"),
        pytest.param(RECLAIMED | {"spec": {"schedulingGates": ["x"]}}, id="a gate that is no mapping"),
        pytest.param(RECLAIMED | {"metadata": {"ownerReferences": 1}}, id="owners that are no list"),
        pytest.param(pod({RECLAIMED_CPU: "many"}), id="an amount that is none"),
    ],
)
def test_a_pod_that_cannot_be_read_is_created_as_it_was_sent(document: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        with_gate(document)
    assert reviewed(document, GATED) is None
