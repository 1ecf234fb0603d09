"""How a NodeMetric is collected, by its spec: everybody may write one, and nobody's stops anything."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.core.node_metric.collect_policy import (
    LEAST_AGGREGATE_S,
    LEAST_REPORT_S,
    LEAST_WINDOW_S,
    MOST_S,
    MOST_WINDOWS,
    CollectPolicy,
    collect_policy,
)

Json = dict[str, Any]
HOT = "usageWithHotPageCache"


def policy(**given: Any) -> CollectPolicy:
    return collect_policy({"spec": {"metricCollectPolicy": given}})


@pytest.mark.parametrize("document", [{}, {"spec": None}, {"spec": {}}, {"spec": {"metricCollectPolicy": None}}])
def test_without_a_policy_it_is_as_upstream(document: Json) -> None:
    found = collect_policy(document)
    assert found == CollectPolicy()
    assert (found.aggregate_s, found.report_s, found.windows_s) == (300, 60, (300, 600, 1800))


def test_what_the_spec_leaves_out_is_as_the_settings_say() -> None:
    own = CollectPolicy(120, 90, (60,), "usageWithPageCache")
    assert collect_policy({}, own) == own
    found = collect_policy({"spec": {"metricCollectPolicy": {"reportIntervalSeconds": 30}}}, own)
    assert found == CollectPolicy(120, 30, (60,), "usageWithPageCache")
    assert (
        "90 is taken"
        in collect_policy({"spec": {"metricCollectPolicy": {"reportIntervalSeconds": "x"}}}, own).unread[0]
    )


def test_a_whole_policy_is_followed() -> None:
    found = policy(
        aggregateDurationSeconds=600,
        reportIntervalSeconds=30,
        nodeAggregatePolicy={"durations": ["15m0s", "1h", "90s"]},
        nodeMemoryCollectPolicy="usageWithPageCache",
    )
    assert found == CollectPolicy(600, 30, (90, 900, 3600), "usageWithPageCache")


@pytest.mark.parametrize(
    ("given", "taken", "words"),
    [
        ({"reportIntervalSeconds": 1}, {"report_s": 30}, "reportIntervalSeconds is 1: 30 is taken; write 30 to 3600"),
        ({"reportIntervalSeconds": 1 << 40}, {"report_s": 3600}, "3600 is taken"),
        ({"reportIntervalSeconds": True}, {}, "is True: 60 is taken"),
        ({"reportIntervalSeconds": "60"}, {}, "is '60': 60 is taken"),
        ({"aggregateDurationSeconds": 59}, {"aggregate_s": 60}, "is 59: 60 is taken; write 60 to 3600"),
        ({"aggregateDurationSeconds": 10**5000}, {"aggregate_s": 3600}, "a number beyond 64 bits"),
        ({"aggregateDurationSeconds": []}, {}, "is list: 300 is taken"),
        ({"nodeAggregatePolicy": 5}, {}, "nodeAggregatePolicy is 5: want an object"),
        ({"nodeAggregatePolicy": {"durations": "5m"}}, {}, "want a list such as [5m, 10m]"),
        ({"nodeAggregatePolicy": {"durations": ["5m", "2h"]}}, {"windows_s": (300,)}, "'2h' is left out; write 1m"),
        ({"nodeAggregatePolicy": {"durations": ["1.5s", "x", None, 300]}}, {"windows_s": ()}, "300 is left out"),
        ({"nodeAggregatePolicy": {"durations": ["1m"] * 9}}, {"windows_s": (60,)}, "has 9 entries: the first 8"),
        ({"nodeMemoryCollectPolicy": HOT}, {}, "needs a kernel that counts cold pages; usageWithoutPageCache is taken"),
        ({"nodeMemoryCollectPolicy": "all"}, {}, "is 'all': usageWithoutPageCache is taken; write one of usageWithout"),
        ({"nodeMemoryCollectPolicy": ["x" * 9]}, {}, "is list"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_and_replaced(given: Json, taken: Json, words: str) -> None:
    found = policy(**given)
    kept = CollectPolicy(**taken)
    assert found.collected == kept.collected
    assert found.report_s == kept.report_s
    assert words in "; ".join(found.unread)


@pytest.mark.parametrize("document", [{"spec": []}, {"spec": "x"}, {"spec": {"metricCollectPolicy": [1]}}])
def test_a_spec_of_another_shape_is_named(document: Json) -> None:
    found = collect_policy(document)
    assert found.collected == CollectPolicy().collected
    assert "want an object" in found.unread[0]


KEYS = st.sampled_from(["spec", "metricCollectPolicy", "aggregateDurationSeconds", "reportIntervalSeconds",
                        "nodeAggregatePolicy", "durations", "nodeMemoryCollectPolicy"])  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda of: st.lists(of) | st.dictionaries(KEYS, of),
)
GIVEN = st.fixed_dictionaries({}, optional={
    "aggregateDurationSeconds": ANYTHING, "reportIntervalSeconds": ANYTHING, "nodeMemoryCollectPolicy": ANYTHING,
    "nodeAggregatePolicy": ANYTHING | st.fixed_dictionaries({"durations": ANYTHING}),
})  # fmt: skip


@given(st.dictionaries(KEYS, ANYTHING) | GIVEN.map(lambda given: {"spec": {"metricCollectPolicy": given}}))
def test_whatever_a_spec_says_what_is_followed_is_within_bounds(document: Json) -> None:
    found = collect_policy(document)
    assert LEAST_AGGREGATE_S <= found.aggregate_s <= MOST_S
    assert LEAST_REPORT_S <= found.report_s <= MOST_S
    assert len(found.windows_s) <= MOST_WINDOWS
    assert all(LEAST_WINDOW_S <= window_s <= MOST_S for window_s in found.windows_s)
    assert found.longest_s <= MOST_S
    assert all(len(why) < 300 for why in found.unread)
