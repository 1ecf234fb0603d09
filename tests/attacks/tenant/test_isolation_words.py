"""A tenant who writes what he likes on CPU burst and memory: nothing throws, and he gets no more than he asked for."""

import json
import os
from typing import Any

import pytest
from odd_documents import odd_texts

from services.qrm.core.isolation.memory_qos import memory_values
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.isolation.wanted import wanted_values
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import QOS_CLASSES, OwnLayout
from shared.core.pods.metadata import bounded

COUNT, SEED = int(os.environ.get("FUZZ", "100000")) // 10, int(os.environ.get("FUZZ_SEED", "1"))
GIB = 1 << 30
BURST, MEMORY = "koordinator.sh/cpuBurst", "koordinator.sh/memoryQOS"
GOOD: list[dict[str, Any]] = [
    {"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300},
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


@pytest.mark.parametrize("depth", [100, 10_000, 200_000])
def test_deep_and_long_texts_say_nothing(depth: int) -> None:
    silent = wanted_values([pod("", "shared_cores")], OwnLayout(), RULES)
    for text in ('{"policy":' * depth, "[" * depth, '{"minLimitPercent": ' + "9" * depth + "}"):
        assert wanted_values([pod(text, "shared_cores")], OwnLayout(), RULES) == silent


def test_batch_work_cannot_protect_memory_that_is_lent_to_it() -> None:
    said = json.dumps({"policy": "auto", "minLimitPercent": 100, "lowLimitPercent": 100})
    values = memory_values([pod(said, "reclaimed_cores")], OwnLayout(), RULES)
    assert not any(knob in (Knob.MEMORY_MIN, Knob.MEMORY_LOW) for _, knob in values)
