"""A tenant who writes what he likes on CPU burst and memory: nothing throws, and he gets no more than he asked for."""

import json
import os
from typing import Any

import pytest
from odd_documents import odd_texts

from services.qrm.core.isolation.memory_qos import memory_values
from services.qrm.core.isolation.quota_burst import QuotaBurstRules
from services.qrm.core.isolation.quota_pods import BurstInput, QuotaBursts
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.isolation.wanted import wanted_values
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import QOS_CLASSES, OwnLayout
from shared.core.pods.metadata import bounded

COUNT, SEED = int(os.environ.get("FUZZ", "100000")) // 10, int(os.environ.get("FUZZ_SEED", "1"))
GIB = 1 << 30
BURST, MEMORY = "koordinator.sh/cpuBurst", "koordinator.sh/memoryQOS"
GOOD: list[dict[str, Any]] = [
    {"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300, "cfsQuotaBurstPeriodSeconds": -1},
    {"policy": "default", "minLimitPercent": 10, "lowLimitPercent": 20, "throttlingPercent": 80, "wmarkRatio": 95,
     "wmarkScalePermill": 20, "wmarkMinAdj": -25},
]  # fmt: skip
RULES = NodeRules(50, {qos: MemoryQos() for qos in QOS_CLASSES}, {}, 8 * GIB)
CONTAINER = Container(name="c", cpu_limit_millis=2000, memory_request_bytes=GIB, memory_limit_bytes=2 * GIB)


def pod(text: str, qos: str) -> Pod:
    """As the node's services get it: annotations have a bound."""
    said = bounded({BURST: text, MEMORY: text}, {}).annotations
    return Pod.model_validate({"uid": "a1", "name": "p", "qos": qos, "containers": (CONTAINER,), "annotations": said})


@pytest.mark.timeout(600)
def test_no_text_gets_more_than_the_pod_asked_for() -> None:
    layout = OwnLayout()
    for name, raw in odd_texts(GOOD, COUNT, SEED):
        text = raw.decode("utf-8", "replace")
        for qos in ("shared_cores", "reclaimed_cores"):
            for (_, knob), value in wanted_values([pod(text, qos)], layout, RULES).items():
                assert knob is not Knob.CPU_BURST or 0 <= value <= CONTAINER.cpu_limit_millis, name
                assert knob not in (Knob.MEMORY_MIN, Knob.MEMORY_LOW) or 0 <= value <= GIB, name
                assert knob is not Knob.MEMORY_HIGH or GIB <= value <= 2 * GIB, name


def throttled(one: Pod, seq: int) -> NodeSample:
    """A sample in which a pod is throttled, and the node has nothing else to do."""
    containers = (ContainerReading(name="c", throttled_ratio=1.0, cpu_usage_cores=2.0),)
    return NodeSample.model_validate(
        {"node": "n", "boot_id": "0" * 16, "seq": seq, "sent_at": "2026-01-01T00:00:00Z", "window_s": 2.0,
         "node_reading": NodeReading(online_cpus="0-9", cpu_usage_cores=2.0),
         "pods": [PodReading(pod=one, containers=containers)]}
    )  # fmt: skip


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rules", [QuotaBurstRules(), QuotaBurstRules(enabled=True, most_percent=150, budget_s=60)])
def test_no_text_raises_a_quota_above_what_the_node_allows(rules: QuotaBurstRules) -> None:
    greedy = json.dumps({"policy": "auto", "cfsQuotaBurstPercent": 100_000, "cfsQuotaBurstPeriodSeconds": -1})
    texts = [raw.decode("utf-8", "replace") for _, raw in odd_texts(GOOD, COUNT // 4, SEED)]
    layout, most_millis = OwnLayout(), CONTAINER.cpu_limit_millis * rules.most_percent // 100
    for text in (greedy, *texts):
        one, bursts = pod(text, "shared_cores"), QuotaBursts()
        for seq in range(1, 5):
            bursts.step([one], BurstInput(throttled(one, seq), 0.1, 2.0 * seq), rules, layout)
        assert all(rules.on and millis <= most_millis for millis in bursts.raised().values()), text[:200]


@pytest.mark.parametrize("depth", [100, 10_000, 200_000])
def test_deep_and_long_texts_say_nothing(depth: int) -> None:
    silent = wanted_values([pod("", "shared_cores")], OwnLayout(), RULES)
    for text in ('{"policy":' * depth, "[" * depth, '{"minLimitPercent": ' + "9" * depth + "}"):
        assert wanted_values([pod(text, "shared_cores")], OwnLayout(), RULES) == silent


def test_batch_work_cannot_protect_memory_that_is_lent_to_it() -> None:
    said = json.dumps({"policy": "auto", "minLimitPercent": 100, "lowLimitPercent": 100})
    values = memory_values([pod(said, "reclaimed_cores")], OwnLayout(), RULES)
    assert not any(knob in (Knob.MEMORY_MIN, Knob.MEMORY_LOW) for _, knob in values)
