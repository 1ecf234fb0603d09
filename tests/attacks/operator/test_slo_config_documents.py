"""Koordinator's ConfigMap as nobody means it: whatever it says, reading it ends soon and what was good stays."""

import asyncio
import json

import pytest
from odd_documents import odd_texts

from services.central.core.slo.config_map import MAX_NAMED, read_slo_config
from services.central.core.slo.effective import effective_slo
from services.central.core.slo.keys import SHAPES, SLO_KEYS
from services.central.slo.answers import SloConfigAnswers
from shared.adapters.clock import SystemClock

SELECTOR = {"matchLabels": {"pool": "a"}, "matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["1"]}]}
GOOD = {
    key: dict(shape.built_in) | {shape.nodes: [{"name": "a", "nodeSelector": SELECTOR, **shape.built_in}]}
    if shape.inline
    else {"clusterStrategy": shape.built_in, shape.nodes: [{"name": "a", "nodeSelector": SELECTOR, **shape.built_in}]}
    for key, shape in SHAPES.items()
}
LAST = read_slo_config({key: json.dumps(document) for key, document in GOOD.items()})


def test_what_is_good_has_no_problem() -> None:
    assert (LAST.problems, LAST.unknown) == ((), ())


@pytest.mark.parametrize("key", SLO_KEYS)
def test_odd_documents_are_read_or_refused_key_by_key(key: str) -> None:
    other = next(name for name in SLO_KEYS if name != key)
    for name, text in odd_texts([GOOD[key]], 400, seed=17):  # type: ignore[index]
        data = {key: text.decode("utf-8", "replace"), other: json.dumps(GOOD[other])}
        found = read_slo_config(data, LAST.config)
        effective = effective_slo(found.config, {"pool": "a"})
        assert set(effective) == set(SLO_KEYS), name
        assert found.config[other] == LAST.config[other], name
        assert len(found.unknown) <= MAX_NAMED + 1, name
        assert all(len(str(problem)) < 2000 for problem in found.problems), name
        for shape_key, shape in SHAPES.items():
            shape.model.model_validate(dict(effective[shape_key].strategy))


@pytest.mark.timeout(60)
def test_many_entries_with_many_labels_are_compared_in_bounded_time() -> None:
    def selector(number: int) -> dict[str, object]:
        return {"matchLabels": {f"l{n}": "x" for n in range(19)} | {f"own{number}": "x"}}

    entries = [{"name": str(n), "nodeSelector": selector(n)} for n in range(100)]
    found = read_slo_config({"system-config": json.dumps({"nodeStrategies": entries})})
    assert len(found.config["system-config"].nodes) == 100
    assert 0 < len(found.problems) <= MAX_NAMED + 1


@pytest.mark.parametrize(
    ("key", "document"),
    [
        ("cpu-normalization-config", {"ratioModel": {"m" * 900_000: {"baseRatio": 9}}}),
        ("resource-amplification-config", {"resourceAmplificationRatio": {"\u00e4" * 400_000: 0}}),
        ("colocation-config", {"cpuCalculatePolicy": "x" * 900_000}),
        ("colocation-config", {"metricAggregatePolicy": {"durations": ["x" * 900_000]}}),
        ("system-config", {"nodeStrategies": [{"name": "n", "nodeSelector": {"matchLabels": {"l" * 900_000: "x"}}}]}),
        ("system-config", {"clusterStrategy": {"f" * 900_000: 1}}),
    ],
)
def test_what_is_said_of_it_is_short_however_long_its_names_are(key: str, document: dict[str, object]) -> None:
    found = read_slo_config({key: json.dumps(document)})
    said = [*map(str, found.problems), *found.unknown]
    assert said
    assert max(map(len, said)) < 1000


@pytest.mark.timeout(120)
def test_the_webhook_answers_whatever_somebody_sends_as_the_config_map() -> None:
    review = {
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "UPDATE",
            "object": {"metadata": {"name": "x"}, "data": {key: json.dumps(row) for key, row in GOOD.items()}},
            "oldObject": {"metadata": {"name": "x"}, "data": {"system-config": "{"}},
        },
    }
    for name, text in odd_texts([review], 400, seed=23):
        status, body = asyncio.run(SloConfigAnswers(SystemClock()).answer(text))
        assert status in (200, 400), name
        assert len(body) < 10_000, name
