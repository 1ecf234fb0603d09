"""Koordinator's ConfigMap before it is stored: what could not be followed is refused with what to write."""

import asyncio
import json
from typing import Any

import pytest

from services.central.slo.answers import MAX_MESSAGE, SloConfigAnswers

THRESHOLD = "resource-threshold-config"
Document = dict[str, Any]


def config_map(**strategy: Any) -> Document:
    return texts(**{THRESHOLD: json.dumps({"clusterStrategy": strategy})})


def texts(**data: str) -> Document:
    return {"metadata": {"name": "slo-controller-config"}, "data": data}


def nodes(*selectors: Document) -> Document:
    rows = [{"name": str(number), "nodeSelector": {"matchLabels": labels}} for number, labels in enumerate(selectors)]
    return texts(**{THRESHOLD: json.dumps({"nodeStrategies": rows})})


def ask(document: Any, old: Document | None = None) -> tuple[int, bytes]:
    request = {"uid": "u-1", "operation": "CREATE" if old is None else "UPDATE", "object": document, "oldObject": old}
    return send(json.dumps({"kind": "AdmissionReview", "request": request}).encode())


def send(body: bytes) -> tuple[int, bytes]:
    return asyncio.run(SloConfigAnswers().answer(body))


def refusal(document: Document, old: Document | None = None) -> str:
    """Why it is refused; "" where it is admitted."""
    status, body = ask(document, old)
    response = json.loads(body)["response"]
    assert (status, response["uid"]) == (200, "u-1")
    return "" if response["allowed"] else str(response["status"]["message"])


@pytest.mark.parametrize(
    "document",
    [
        texts(),
        {"metadata": {}},
        config_map(enable=True, cpuSuppressThresholdPercent=50),
        config_map(somethingNew=1),
        texts(unknown="{"),
        nodes({"pool": "a"}, {"pool": "b"}),
    ],
)
def test_what_can_be_followed_is_admitted(document: Document) -> None:
    assert refusal(document) == ""


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (config_map(cpuSuppressThresholdPercent=101), "cpuSuppressThresholdPercent = 101: want at most 100"),
        (config_map(cpuSuppressPolicy="cfsquota"), "did you mean 'cfsQuota'"),
        (texts(**{THRESHOLD: "{"}), THRESHOLD),
        (nodes({"pool": "a"}, {"zone": "b"}), "can take the same node"),
        (nodes({}), "takes every node; say it under the cluster's strategy instead"),
    ],
)
def test_what_cannot_is_refused_with_value_bound_and_next_step(document: Document, said: str) -> None:
    assert said in refusal(document)
    assert refusal(document).endswith("`sublet config slo -f FILE` says the same of a file")
    assert said in refusal(document, config_map(enable=True))


def test_what_was_wrong_before_holds_up_no_other_change() -> None:
    bad = config_map(cpuSuppressThresholdPercent=101)
    assert refusal({**bad, "metadata": {"labels": {"a": "b"}}}, bad) == ""
    assert "want at most 100" in refusal(config_map(cpuSuppressThresholdPercent=102), bad)
    assert refusal(texts(), bad) == ""


def test_a_refusal_is_short_however_much_is_wrong() -> None:
    data = {f"x{n}": -1 for n in range(50)} | {"cpuSuppressPolicy": "y" * 10_000}
    assert 0 < len(refusal(config_map(**data))) < 2 * MAX_MESSAGE


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"kind": "AdmissionReview"}', b"\xff" * 100])
def test_what_is_no_review_is_answered_as_such(body: bytes) -> None:
    assert send(body)[0] == 400


@pytest.mark.parametrize("document", [None, [], 1, "x"])
def test_a_review_without_an_object_is_none(document: Any) -> None:
    assert ask(document)[0] in (200, 400)
