"""Koordinator's ConfigMap before it is stored: what could not be followed is refused with what to write."""

import asyncio
import json
import threading
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from services.central.core.slo.config_map import MAX_KEY_BYTES, MAX_NAMED
from services.central.slo import answers
from services.central.slo.answers import MAX_MESSAGE, SloConfigAnswers
from shared.adapters.clock import SystemClock
from shared.core.log_limit import QUIET_S

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
    return send(review(document, old))


def review(document: Any, old: Document | None = None) -> bytes:
    request = {"uid": "u-1", "operation": "CREATE" if old is None else "UPDATE", "object": document, "oldObject": old}
    return json.dumps({"kind": "AdmissionReview", "request": request}).encode()


def send(body: bytes) -> tuple[int, bytes]:
    return asyncio.run(SloConfigAnswers(SystemClock()).answer(body))


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


def pools(*percents: int) -> Document:
    """A strategy for each pool of nodes."""
    rows = [
        {"name": f"p{n}", "nodeSelector": {"matchLabels": {"pool": f"p{n}"}}, "cpuSuppressThresholdPercent": percent}
        for n, percent in enumerate(percents)
    ]
    return texts(**{THRESHOLD: json.dumps({"nodeStrategies": rows})})


def disks(*limits: int) -> Document:
    """Limits of many disks in one strategy."""
    blocks = [{"name": f"d{n}", "ioCfg": {"readIOPS": limit}} for n, limit in enumerate(limits)]
    strategy = {"beClass": {"blkioQOS": {"blocks": blocks}}}
    return texts(**{"resource-qos-config": json.dumps({"clusterStrategy": strategy})})


@pytest.mark.parametrize(("made", "bad", "good"), [(pools, 101, 50), (disks, -1, 1)])
def test_of_many_faults_some_may_be_corrected(made: Any, bad: int, good: int) -> None:
    """More than are shown: that others are shown then does not make them new."""
    count = MAX_NAMED + 6
    before = made(*[bad] * count)
    assert refusal(made(good, *[bad] * (count - 1)), before) == ""
    assert refusal(made(*[bad] * count, bad), before) != ""
    assert "and 6 more" in refusal(before)


def test_a_config_map_that_no_api_server_holds_is_not_read() -> None:
    halves = {"a": " " * (MAX_KEY_BYTES // 2), "b": " " * (MAX_KEY_BYTES // 2)}
    assert refusal(texts(**halves)) == ""
    status, said = ask(texts(**halves, c=" "))
    assert (status, f"at most {MAX_KEY_BYTES} are read" in said.decode()) == (400, True)


def not_read() -> float:
    labels = {"kind": "validate_slo", "outcome": "not_read"}
    return REGISTRY.get_sample_value("sublet_central_pod_reviews_total", labels) or 0.0


async def test_one_is_read_at_a_time_and_who_went_away_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    read, go_on, entered = answers._review, threading.Event(), threading.Event()

    def slowly(text: bytes) -> answers.SloConfigReview:
        entered.set()
        go_on.wait()
        return read(text)

    monkeypatch.setattr(answers, "_review", slowly)
    one, before = SloConfigAnswers(SystemClock()), not_read()
    asked = asyncio.create_task(one.answer(review(texts())))
    try:
        await asyncio.to_thread(entered.wait)
        assert (await one.answer(review(texts())))[0] == 503
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        assert (await one.answer(review(texts())))[0] == 503
        assert not_read() == before + 2
    finally:
        go_on.set()
    while (answer := await one.answer(review(texts())))[0] == 503:
        await asyncio.sleep(0)
    assert answer[0] == 200


class SetClock(SystemClock):
    """Stands still until a test says otherwise."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


async def test_refusals_are_logged_once_in_a_while() -> None:
    clock = SetClock()
    one, bad = SloConfigAnswers(clock), review(config_map(cpuSuppressThresholdPercent=101))
    with capture_logs() as logs:
        for _ in range(3):
            await one.answer(bad)
        clock.now_s = QUIET_S
        await one.answer(bad)
    assert [(row["event"], row["held_back"]) for row in logs] == [("slo.not_admitted", 0), ("slo.not_admitted", 2)]
