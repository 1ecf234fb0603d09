"""CPU that is offered: by the pool, by supply, by use; and nothing more where figures are missing."""

import pytest
from advisor_world import MakeSample
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.offer.cpu import Basis, CpuFigures, CpuOffer, cpu_figures, cpu_offer, within
from services.advisor.core.offer.headroom import GroupUse, HeadroomRules, ReclaimedUse
from services.advisor.core.offer.utilization import UtilRules
from shared.contracts.sample import CpuUsage, PoolReading
from shared.core.cpus.cpuset import CpuSet

NUMAS = {0: CpuSet.parse("0-3"), 1: CpuSet.parse("4-7")}
POOL = CpuSet.parse("1-3,5-7")
IDLE = dict.fromkeys(range(8), 0.0)
USED = IDLE | {1: 0.5, 5: 1.0}
SUPPLY, UTIL = HeadroomRules(), HeadroomRules(UtilRules())
LAST = CpuOffer({0: 2000, 1: 1000})


@pytest.mark.parametrize(
    ("basis", "figures", "last", "rules", "want"),
    [
        pytest.param("pool", CpuFigures(POOL, NUMAS), CpuOffer(), SUPPLY, {0: 3000, 1: 3000}, id="the pool"),
        pytest.param(
            "supply", CpuFigures(POOL, NUMAS, USED, ReclaimedUse()), LAST, SUPPLY, {0: 2250, 1: 2250},
            id="without what others use",
        ),
        pytest.param(
            "supply", CpuFigures(POOL, NUMAS, USED, ReclaimedUse(GroupUse(1.5))), LAST, SUPPLY, {0: 3000, 1: 3000},
            id="what reclaimed pods use is theirs",
        ),
        pytest.param(
            "util", CpuFigures(POOL, NUMAS, IDLE, ReclaimedUse()), LAST, UTIL, {0: 3300, 1: 3300}, id="little used"
        ),
        pytest.param("supply", CpuFigures(POOL, NUMAS, USED), LAST, SUPPLY, {0: 2000, 1: 1000}, id="use unknown"),
        pytest.param(
            "util", CpuFigures(POOL, NUMAS, None, ReclaimedUse()), LAST, UTIL, {0: 2000, 1: 1000}, id="CPUs unknown"
        ),
        pytest.param("supply", CpuFigures(POOL, NUMAS), CpuOffer(), SUPPLY, {0: 0, 1: 0}, id="nothing known ever"),
        pytest.param("pool", CpuFigures(CpuSet(), NUMAS), LAST, SUPPLY, {}, id="no pool"),
    ],
)  # fmt: skip
def test_an_offer(
    basis: Basis, figures: CpuFigures, last: CpuOffer, rules: HeadroomRules, want: dict[int, int]
) -> None:
    offer = cpu_offer(basis, figures, last, rules)
    assert offer.millis == want
    assert offer.capacity_millis == {numa: max(3000, millis) for numa, millis in want.items()}


pools = st.integers(0, 255).map(CpuSet)
ratios = st.none() | st.lists(st.floats(0, 1), min_size=8, max_size=8).map(lambda each: dict(enumerate(each)))
uses = st.none() | st.builds(ReclaimedUse, st.builds(GroupUse, st.floats(0, 8), st.none() | st.floats(0, 8)))
lasts = st.dictionaries(st.integers(0, 1), st.integers(0, 9000)).map(CpuOffer)


@given(st.sampled_from(["pool", "supply", "util"]), pools, ratios, uses, lasts, st.integers(0, 10_000))
def test_an_offer_is_never_above_its_capacity_and_stays_within_a_bound(
    basis: Basis, pool: CpuSet, used: dict[int, float] | None, use: ReclaimedUse | None, last: CpuOffer, most: int
) -> None:
    rules = UTIL if basis == "util" else SUPPLY
    offer = cpu_offer(basis, CpuFigures(pool, NUMAS, used, use), last, rules)
    assert list(offer.millis) == list(offer.capacity_millis) == [n for n, cpus in NUMAS.items() if cpus & pool]
    assert all(0 <= millis <= offer.capacity_millis[numa] for numa, millis in offer.millis.items())
    if basis != "pool" and (used is None or use is None):
        assert all(millis <= last.millis.get(numa, 0) for numa, millis in offer.millis.items())
    short = offer.within(most)
    assert short.total_millis <= max(most, 0)
    assert short.total_millis >= min(most, offer.total_millis) - len(NUMAS)


def test_amounts_are_shortened_alike() -> None:
    assert within({0: 300, 1: 100}, 200) == {0: 150, 1: 50}
    assert within({0: 3, 1: 1}, 4) == {0: 3, 1: 1}
    assert within({0: 0}, -1) == {0: 0}


def test_figures_of_a_sample(sample: MakeSample) -> None:
    busy = CpuUsage(cpus="0-7", busy_percent=(0, 50, 0, 0, 0, 100, 0, 0))
    reclaim = PoolReading(pool="reclaim", cpu_usage_cores=1.5, cpu_limit_cores=4.0)
    figures = cpu_figures(sample(node={"cpus": busy}, pools=(reclaim,)), POOL, NUMAS)
    assert figures == CpuFigures(POOL, NUMAS, USED, ReclaimedUse(GroupUse(1.5, 4.0)))


@pytest.mark.parametrize(
    ("node", "pool", "unknown"),
    [
        pytest.param({}, {"cpu_usage_cores": 1.0}, "used_ratio", id="no CPU"),
        pytest.param({"cpus": CpuUsage(cpus="0-4", busy_percent=(0,) * 5)}, {}, "used_ratio", id="a CPU of the pool"),
        pytest.param({"cpus": CpuUsage(cpus="0-7", busy_percent=(0,) * 8)}, {}, "use", id="the reclaimed pods"),
    ],
)
def test_what_a_sample_does_not_say_is_not_known(
    sample: MakeSample, node: dict[str, CpuUsage], pool: dict[str, float], unknown: str
) -> None:
    figures = cpu_figures(sample(node=node, pools=(PoolReading(pool="reclaim", **pool),)), POOL, NUMAS)
    assert getattr(figures, unknown) is None
