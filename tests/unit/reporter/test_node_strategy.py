"""What a Node says of its own colocation: followed where it can be, named where it cannot."""

import json
from datetime import datetime
from typing import Any

import pytest
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.batch_node_offer import BatchNodeOffer
from services.reporter.core.field import FieldView, Offered
from services.reporter.core.node_strategy import (
    CPU_RECLAIM_RATIO,
    MEMORY_RECLAIM_RATIO,
    MOST_UNREAD,
    STRATEGY,
    NodeOverride,
    node_override,
)
from services.reporter.fields import conditions
from services.reporter.offer_over_time import ColocationInput
from services.reporter.settings import ReporterSettings
from shared.contracts.sample import NodeReading

GIB = 1 << 30


def node(strategy: Any = None, **labels: str) -> dict[str, Any]:
    """A Node of ten CPUs and 10 GiB; `strategy` as JSON, or as the text that it is."""
    text = strategy if isinstance(strategy, str) else json.dumps(strategy)
    annotations = {} if strategy is None else {STRATEGY: text}
    amounts = {"cpu": "10", "memory": "10Gi"}
    metadata = {"annotations": annotations, "labels": {f"node.koordinator.sh/{k}": v for k, v in labels.items()}}
    return {"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}}


def labelled(strategy: Any = None, *, cpu: str | None = None, memory: str | None = None) -> dict[str, Any]:
    found = node(strategy)
    said = {CPU_RECLAIM_RATIO: cpu, MEMORY_RECLAIM_RATIO: memory}
    found["metadata"]["labels"] = {label: text for label, text in said.items() if text is not None}
    return found


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param({}, NodeOverride(), id="nothing"),
        pytest.param(node({}), NodeOverride(), id="an empty strategy"),
        pytest.param(node({"enable": False}), NodeOverride(off=True), id="off"),
        pytest.param(node({"enable": True}), NodeOverride(), id="no Node switches itself on"),
        pytest.param(node({"cpuReclaimThresholdPercent": 40, "memoryReclaimThresholdPercent": None}),
                     NodeOverride(batch={"cpu_reclaim_percent": 40}), id="null says nothing"),
        pytest.param(node({"degradeTimeMinutes": 15}), NodeOverride(degrade_after_s=900.0), id="minutes"),
        pytest.param(node({"memoryCalculatePolicy": "request", "batchMemoryThresholdPercent": 0}),
                     NodeOverride(batch={"memory_policy": "request", "memory_at_most_percent": 0}), id="words"),
        pytest.param(node({"updateTimeThresholdSeconds": -1, "x": "y"}), NodeOverride(), id="of others"),
        pytest.param(labelled(cpu="0.57", memory="1"),
                     NodeOverride(batch={"cpu_reclaim_percent": 57, "memory_reclaim_percent": 100}), id="ratios"),
        pytest.param(labelled({"cpuReclaimThresholdPercent": 40}, cpu="0.7"),
                     NodeOverride(batch={"cpu_reclaim_percent": 70}), id="a label before the annotation"),
    ],
)  # fmt: skip
def test_what_a_node_says_of_itself(document: dict[str, Any], found: NodeOverride) -> None:
    assert node_override(document) == found


@pytest.mark.parametrize(
    ("document", "where"),
    [
        *((node(text), STRATEGY) for text in ("", "{", "[]", "null", "9" * 5000, '{"a": ' * 300)),
        *(
            (node({key: value}), f"{STRATEGY}: {key} {value!r}")
            for key, value in (
                ("enable", "yes"),
                ("cpuReclaimThresholdPercent", 101),
                ("cpuReclaimThresholdPercent", True),
                ("memoryReclaimThresholdPercent", -1),
                ("cpuCalculatePolicy", "request"),
                ("batchCPUThresholdPercent", 0.5),
                ("degradeTimeMinutes", 0),
                ("degradeTimeMinutes", 61),
            )
        ),
        *((labelled(cpu=text), f"{CPU_RECLAIM_RATIO} {text!r}") for text in ("", "much", "nan", "inf", "-0.1", "1.01")),
    ],
)
def test_a_wrong_value_leaves_the_configured_one_and_is_named(document: dict[str, Any], where: str) -> None:
    found = node_override(document)
    (why,) = found.unread
    assert why.startswith(where)
    assert why.endswith("what is configured holds")
    assert len(why) < 300
    assert not found.off
    assert (found.degrade_after_s, found.batch) == (None, {})


def test_what_is_wrong_of_mid_resources_alone_is_named_there() -> None:
    found = node_override(node({"midReclaimMode": 1}))
    assert (found.mid, found.unread, len(found.unread_mid)) == ({}, (), 1)
    assert found.unread_mid[0].startswith(f"{STRATEGY}: midReclaimMode 1")
    modes = [node_override(node({"midReclaimMode": mode})).mid for mode in ("static", "other", None)]
    assert modes == [{"mode": "static"}, {"mode": "prediction"}, {}]


def test_one_wrong_value_does_not_cost_the_others() -> None:
    found = node_override(labelled({"cpuReclaimThresholdPercent": "x", "degradeTimeMinutes": 2}, memory="0.5"))
    assert (found.degrade_after_s, found.batch, len(found.unread)) == (120.0, {"memory_reclaim_percent": 50}, 1)


KEYS = st.sampled_from(
    ["metadata", "annotations", "labels", "enable", "degradeTimeMinutes", "cpuCalculatePolicy", STRATEGY]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers() | st.floats(),
    lambda of: st.lists(of) | st.dictionaries(KEYS | st.just(CPU_RECLAIM_RATIO), of),
)


@given(ANYTHING)
def test_whatever_a_node_says_is_read_within_bounds(said: Any) -> None:
    metadata = {"annotations": said, "labels": said}
    for document in (said if isinstance(said, dict) else {}, {"metadata": metadata}, node(json.dumps(said))):
        found = node_override(document)
        assert all(0 <= value <= 100 for value in found.batch.values() if isinstance(value, int))
        assert found.degrade_after_s is None or 60 <= found.degrade_after_s <= 3600
        assert len(found.unread) <= MOST_UNREAD


class Offer:
    """The offer of a Node of ten CPUs that uses three."""

    def __init__(self, sample: NewSample, **batch: Any) -> None:
        settings = ReporterSettings.model_validate({"batch": {"enabled": True} | batch})
        self.offer = BatchNodeOffer(settings)
        used = {"cpu_usage_cores": 3.0, "memory_total_bytes": 10 * GIB, "memory_available_bytes": 7 * GIB}
        self._sample = sample(node_reading=NodeReading(online_cpus="0-9", **used), pods=())

    def after(self, now_s: float, document: dict[str, Any], age_s: float = 0.0) -> int | None:
        seen = ColocationInput(None, self._sample, age_s, document, in_a_cluster=True)
        found = self.offer.smoothed(seen, Offered(0, 0), now_s)
        return None if found is None else found.cpu_millis


def test_the_nodes_own_strategy_holds_from_the_next_look_on_and_what_is_configured_comes_back(
    sample: NewSample,
) -> None:
    offer = Offer(sample)
    assert offer.after(0, node({"cpuReclaimThresholdPercent": 50})) == 2000
    assert offer.after(1, node({"enable": False})) is None
    assert offer.after(2, node()) == 3000
    assert offer.after(3, labelled(cpu="0.4")) == 1000
    assert Offer(sample, enabled=False).after(0, node({"enable": True})) is None


def test_the_nodes_own_time_ends_an_offer(sample: NewSample) -> None:
    offer = Offer(sample)
    two_minutes = node({"degradeTimeMinutes": 2})
    assert [offer.after(age_s, two_minutes, age_s) for age_s in (0.0, 119.0, 121.0)] == [3000, 3000, None]


def test_the_terms_tell_the_policy_that_the_node_asked_for(sample: NewSample) -> None:
    offer = Offer(sample)
    offer.after(0, node({"cpuCalculatePolicy": "maxUsageRequest", "memoryReclaimThresholdPercent": "x"}))
    state = offer.offer.state()
    assert state is not None
    assert (state["cpu"]["policy"], len(state["unread"])) == ("maxUsageRequest", 1)


def test_what_cannot_be_followed_is_a_condition_that_goes_with_its_cause(sample: NewSample, now: datetime) -> None:
    def told(offer: Offer) -> list[str]:
        found = conditions.fragment(FieldView(now, node_unread=offer.offer.unread))
        rows = [] if found is None else found["status"]["conditions"]
        return [row["message"] for row in rows if row["type"] == "NodeStrategyUnread"]

    offer, off = Offer(sample), Offer(sample, enabled=False)
    wrong = node({"cpuReclaimThresholdPercent": 140})
    offer.after(0, wrong)
    off.after(0, wrong)
    assert told(offer) == [
        "correct or remove on the Node: node.koordinator.sh/colocation-strategy: cpuReclaimThresholdPercent 140: "
        "want a whole number from 0 to 100; what is configured holds"
    ]
    assert told(off) == []
    offer.after(1, node())
    assert told(offer) == []
