"""A NodeMetric as nobody means it, and pods by names that are none: what is written stays within bounds."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from odd_documents import odd_documents
from pydantic import ValidationError

from services.reporter.core.node_metric.collect_policy import MOST_S, MOST_WINDOWS, collect_policy
from services.reporter.core.node_metric.figures import node_metric_figures
from services.reporter.core.node_metric.usage_windows import UsageWindows
from services.reporter.core.node_metric.writer_turn import MOST_MANAGERS, NAME_CHARACTERS, ReportTime, WriterTurn
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeReading, NodeSample, PodReading

GOOD = {
    "spec": {
        "metricCollectPolicy": {
            "aggregateDurationSeconds": 300,
            "reportIntervalSeconds": 60,
            "nodeAggregatePolicy": {"durations": ["5m", "10m", "30m"]},
            "nodeMemoryCollectPolicy": "usageWithoutPageCache",
        }
    }
}
SAMPLE = {
    "node": "n1",
    "boot_id": "0" * 16,
    "sent_at": "2026-01-01T00:00:00Z",
    "seq": 1,
    "window_s": 1.0,
    "node_reading": NodeReading(online_cpus="0", cpu_usage_cores=1.0, memory_total_bytes=2, memory_available_bytes=1),
}


def test_odd_specs_are_followed_within_bounds() -> None:
    sample = NodeSample.model_validate(SAMPLE)
    for name, document in odd_documents([GOOD], 2000, seed=17):
        policy = collect_policy(document)
        assert 60 <= policy.aggregate_s <= MOST_S, name
        assert 30 <= policy.report_s <= MOST_S, name
        assert len(policy.windows_s) <= MOST_WINDOWS, name
        assert len(json.dumps(policy.unread)) < 2000, name
        windows = UsageWindows(policy)
        windows.add(sample, 1.0)
        assert node_metric_figures(windows, policy, 1.0) is not None, name


WRITTEN: dict[str, Any] = {
    "metadata": {
        "uid": "u",
        "managedFields": [
            {"manager": "koordlet", "subresource": "status", "fieldsV1": {"f:status": {"f:updateTime": {}}}}
        ],
    },
    "status": {"updateTime": "2026-01-01T00:00:00Z"},
}


def test_odd_words_on_who_wrote_it_end_nothing_and_name_somebody_in_few_words() -> None:
    time = ReportTime(100.0, datetime(2026, 1, 1, 0, 1, tzinfo=UTC), 60.0)
    for name, document in odd_documents([WRITTEN], 2000, seed=18):
        turn = WriterTurn("sublet-node-metric")
        for _ in range(2):
            assert len(turn.other) <= NAME_CHARACTERS, name
            assert turn.is_ours(document, time) == (turn.other == ""), name
        turn.wrote(document)


def test_a_crowd_of_managers_is_not_read_to_its_end() -> None:
    crowd = [{"manager": "x", "fieldsV1": {"f:status": {}}}] * MOST_MANAGERS
    meta = {"managedFields": crowd + WRITTEN["metadata"]["managedFields"]}
    turn = WriterTurn("sublet-node-metric")
    assert not turn.is_ours(WRITTEN | {"metadata": meta}, ReportTime(0.0, datetime(2026, 1, 1, tzinfo=UTC), 60.0))
    assert turn.other == "unknown"


@pytest.mark.timeout(20)
def test_a_long_list_of_windows_is_cut_before_it_is_read() -> None:
    spec = {"metricCollectPolicy": {"nodeAggregatePolicy": {"durations": ["9" * 100_000 + "h"] * 100_000}}}
    found = collect_policy({"spec": spec})
    assert found.windows_s == ()
    assert sum(map(len, found.unread)) < 2000


@pytest.mark.parametrize("name", ["../../n2", "a" * 300, "", "a b", "x\x1b[2J", "{}", "A", "web\n"])
def test_a_pod_by_a_name_that_is_none_comes_in_no_sample(name: str) -> None:
    with pytest.raises(ValidationError):
        Pod(uid="aa", name=name)
    with pytest.raises(ValidationError):
        NodeSample.model_validate(SAMPLE | {"pods": [{"pod": {"uid": "aa", "name": "web", "namespace": name}}]})


def test_a_crowd_of_pods_that_come_and_go_is_forgotten() -> None:
    policy = collect_policy({})
    windows = UsageWindows(policy)
    for second in range(200):
        pods = tuple(PodReading(pod=Pod(uid=f"{second:04x}{number:04x}", name="web")) for number in range(50))
        windows.add(NodeSample.model_validate(SAMPLE | {"pods": pods}), float(second))
    assert len(windows.pods) == 50
