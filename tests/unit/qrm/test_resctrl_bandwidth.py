"""Memory bandwidth: quotas of a domain, flow between domains, plans of CCDs, caps; a law for each rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.resctrl.cap import CapRules, capped, next_cap
from services.qrm.core.resctrl.flow import Flow, outgoing_targets
from services.qrm.core.resctrl.plan import GroupSeen, PlanRules, ccd_shares, eighths, group_plan, settings_for
from services.qrm.core.resctrl.quotas import QuotaRules, domain_quotas, weight
from services.qrm.core.resctrl.rates import ByteCounter, CounterReading, rates, read_counter
from shared.errors import Refused

MB = 1_000_000
NAMES = st.sampled_from(["/", "dedicated", "system", "share", "share-30", "share-60", "other", "reclaim"])
USE = st.dictionaries(NAMES, st.integers(0, 60_000), min_size=1)
CAPACITY = st.integers(0, 100_000)


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        ("/", 10_000),
        ("dedicated", 9_000),
        ("dedicated-a", 9_000),
        ("system", 8_000),
        ("share", 1_050),
        ("share-30", 1_030),
        ("shared-30", 1_030),
        ("share-x", 1_000),
        ("shared", 5_000),
        ("reclaim", 100),
        ("other-7", 5_000),
    ],
)
def test_weights(group: str, wanted: int) -> None:
    assert weight(group, {}) == wanted
    assert weight("other", {"other": 7}) == 7


@given(USE, CAPACITY)
def test_law_a_quota_is_within_what_higher_groups_leave_and_a_reserve_stays_free(
    used: dict[str, int], capacity: int
) -> None:
    found = domain_quotas(used, QuotaRules(capacity))
    assert found.quotas.keys() == used.keys()
    assert all(0 <= found.quotas[group] <= found.limits[group] <= capacity for group in used)
    assert (found.state == "stressful") is (found.free_mb < capacity * 5 // 100)
    limits = [found.limits[equals[0]] for equals in found.order]
    assert limits == sorted(limits, reverse=True)
    if found.state != "stressful":
        assert found.quotas == found.limits


@given(USE, st.integers(1, 100_000), st.integers(1, 99))
def test_law_only_an_active_group_lowers_the_capacity(used: dict[str, int], capacity: int, percent: int) -> None:
    found = domain_quotas(used, QuotaRules(capacity, {"dedicated": percent, "share": 0, "system": 100}))
    active = used.get("dedicated", 0) >= 1000
    assert found.capacity_mb == (capacity * percent // 100 if active else capacity)


@given(st.lists(st.tuples(st.integers(0, 30_000), st.integers(0, 15_000), CAPACITY), min_size=1, max_size=4))
def test_law_what_the_targets_let_out_arrives_as_wanted(domains: list[tuple[int, int, int]]) -> None:
    flows = [Flow(local, remote) for local, remote, _ in domains]
    targets = [target for _, _, target in domains]
    try:
        found = outgoing_targets(targets, flows, 15_000)
    except Refused:
        return
    assert all(one >= 0 for one in found)
    if all(flow.remote_mb == 0 for flow in flows):
        assert found == targets, "nothing crosses, so every domain has its own"


def test_flow_is_turned_around_exactly() -> None:
    flows = [Flow(15_000, 5_000), Flow(10_000, 0)]
    out = outgoing_targets([9_000, 9_000], flows, 15_000)
    assert out == [12_000, 6_000]
    arrived = (out[0] * 3 // 4, out[1] + out[0] // 4)
    assert arrived == (9_000, 9_000)


def test_a_silent_domain_is_no_division_by_zero_and_two_equal_ways_have_a_name() -> None:
    assert outgoing_targets([4_000, 5_000], [Flow(0, 0), Flow(9, 0)], 15_000) == [4_000, 5_000]
    with pytest.raises(Refused) as refused:
        outgoing_targets([1, 1], [Flow(5, 5), Flow(7, 7)], 15_000)
    assert refused.value.reason == "singular_flow"
    with pytest.raises(Refused):
        outgoing_targets([1], [Flow(0, 5)], 15_000)
    assert outgoing_targets([10], [Flow(50, 50)], 0) == [10], "what is remote beyond the limit does not count"


@given(CAPACITY, st.integers(0, 50_000), st.integers(0, 50_000), st.integers(25, 100))
def test_law_a_setting_is_never_below_its_part_of_what_is_wanted(want: int, before: int, seen: int, cap: int) -> None:
    (found,) = settings_for([want], GroupSeen([Flow(seen, 0)], [before]), cap)
    assert found >= want * cap // 100
    assert settings_for([want], GroupSeen([Flow(seen, 0)]), cap) == [want], "no setting before"


@given(CAPACITY, st.dictionaries(st.integers(0, 11), st.integers(0, 40_000), min_size=1))
def test_law_ccds_are_within_their_bounds(setting: int, used: dict[int, int]) -> None:
    rules = PlanRules()
    found = ccd_shares(setting, used, rules)
    assert found.keys() == used.keys()
    assert all(rules.least_ccd_mb <= mb <= rules.most_ccd_mb for mb in found.values())
    free = group_plan("/", [setting], GroupSeen(ccds={0: used}), rules)
    assert set(free.ccds.values()) == {rules.most_ccd_mb}, "the root's group is never throttled"


def test_eighths_are_rounded_up_by_number() -> None:
    assert eighths({3: 4_001, 2: 4_000}) == {2: 32, 3: 33}


@given(st.integers(0, 50_000), st.lists(st.integers(0, 90_000), max_size=50))
def test_law_a_cap_stays_within_its_bounds_and_only_moves_with_what_is_observed(start: int, seen: list[int]) -> None:
    rules, cap = CapRules(20_000), start
    for observed in seen:
        before, cap = cap, next_cap(cap, observed, rules)
        assert cap == before if observed == 0 else rules.least_ccd_mb <= cap <= rules.most_ccd_mb
    assert capped({1: 50_000, 2: 1}, 9_000, 4_000) == {1: 9_000, 2: 4_000}


def reading(at_s: float, local: int, total: int) -> CounterReading:
    return CounterReading(at_s, {"/": {0: ByteCounter(local, total)}})


@pytest.mark.parametrize(
    ("after", "flow"),
    [
        (reading(2.0, 60 * MB, 100 * MB), {0: Flow(30, 20)}),
        (reading(2.0, 101 * MB, 100 * MB), {0: Flow(50, 0)}),
        (reading(2.0, -1, 100 * MB), {}),
        (reading(2.0, 0, -1), {}),
        (reading(2.0, 0, 10**15), {}),
        (reading(0.0, 60 * MB, 100 * MB), {}),
        (CounterReading(2.0, {"/": {}}), {}),
    ],
)
def test_rates_are_of_two_readings_of_one_counter(after: CounterReading, flow: dict[int, Flow]) -> None:
    assert rates(reading(0.0, 0, 0), after, ["/"]) == {"/": flow}
    assert rates(None, after, ["/"]) == {"/": {}}


@pytest.mark.parametrize("text", ["Unavailable", "Error", "Unassigned", "", None, "-1", "9" * 99, "٣"])
def test_a_silent_counter_is_absent_and_not_zero(text: str | None) -> None:
    assert read_counter(text, "5") is None
    assert read_counter("5", text) is None
    assert read_counter("0\n", "5\n") == ByteCounter(0, 5)
