"""The offer of a round: the defaults are the round's own figures; other rules never offer more than is advised."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.offer.cpu import Basis, CpuOffer
from services.advisor.core.offer.offering import Offering, OfferInputs, ReclaimOfferRules, offering
from services.advisor.core.offer.utilization import UtilRules
from services.advisor.core.round.decide import Round, SizingRules, decide
from services.advisor.core.round.guard import ConfiguredPolicy
from services.advisor.policies.canonical import POLICY
from shared.contracts.pod import Pod
from shared.contracts.sample import (
    ContainerReading,
    CpuUsage,
    NodeReading,
    NodeSample,
    NumaReading,
    PodReading,
    PoolReading,
)
from shared.core.cpus.cpuset import CpuSet

GIB = 1 << 30
NUMAS = {0: CpuSet.parse("0-11,24-35"), 1: CpuSet.parse("12-23,36-47")}
POOL = CpuSet.parse("0-10,12-22,24-34,36-46")
NOTHING = CpuOffer()
CHOSEN = ConfiguredPolicy(POLICY, POLICY.settings())


def seen(
    *, others_percent: int | None = 0, used_cores: float | None = 0.0, free_gib: int = 60, fresh: bool = True,
    pool: CpuSet | None = POOL, cache_gib: int = 0,
) -> OfferInputs:  # fmt: skip
    cpus = None if others_percent is None else CpuUsage(cpus="0-47", busy_percent=(others_percent,) * 48)
    batch = PodReading(
        pod=Pod(uid="b1", name="batch", qos="reclaimed_cores"),
        containers=(ContainerReading(name="c", memory_cache_bytes=cache_gib * GIB),),
    )
    sample = NodeSample(
        node="n", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), window_s=2.0,
        node_reading=NodeReading(
            online_cpus="0-47", cpus=cpus, memory_total_bytes=100 * GIB, memory_free_bytes=free_gib * GIB,
            memory_available_bytes=free_gib * GIB, watermark_scale_factor=10,
        ),
        numas=tuple(
            NumaReading(
                numa=n, memory_total_bytes=50 * GIB, memory_free_bytes=free_gib * GIB // 2, inactive_file_bytes=0
            )
            for n in NUMAS
        ),
        pools=(PoolReading(pool="reclaim", cpu_usage_cores=used_cores, memory_usage_bytes=GIB),),
        pods=(batch,),
    )  # fmt: skip
    view = view_of(sample, Bounds.of(48, smt=True))
    return OfferInputs(sample, view if fresh else view.blind(), pool, NUMAS)


def made(what: OfferInputs, rules: ReclaimOfferRules, last: CpuOffer = NOTHING) -> tuple[Round, Offering]:
    done = decide(what.view, 0.0, ConfiguredPolicy(POLICY, POLICY.settings()), SizingRules(), None)
    return done, offering(done, what, rules, SizingRules(), last)


def test_by_default_the_rounds_own_figures_are_offered() -> None:
    done, offer = made(seen(), ReclaimOfferRules())
    assert offer.fields == {**done.fields(), "drop_cache": ()}
    assert offer.fields["reclaimed_cpu_millis"] == 44_000


def test_by_supply_what_others_use_of_the_pool_is_not_offered() -> None:
    _, offer = made(seen(others_percent=25), ReclaimOfferRules(cpu="supply"))
    assert offer.fields["reclaimed_cpu_millis"] == 33_000
    assert offer.fields.get("oversold_ratio", 1.0) == 1.0


@pytest.mark.parametrize(
    ("cpu", "offer", "oversold"),
    [
        pytest.param("pool", 40_000, 10.0, id="the mean, up to ten times the pool"),
        pytest.param("supply", 4000, 1.0, id="the pool as it is now"),
    ],
)
def test_where_cpus_are_shared_a_spike_leaves_the_offer_by_the_pool_alone_as_it_was(
    cpu: Basis, offer: int, oversold: float
) -> None:
    """As docs/shared-cpus.md says."""
    what = seen(pool=CpuSet.parse("0-3"))
    calm = replace(what.view, bounds=Bounds.of(48, smt=True, shape="shared"))
    first = decide(calm, 0.0, CHOSEN, SizingRules(), None)
    spike = decide(replace(calm, tenants_usage_cores=60.0), 2.0, CHOSEN, SizingRules(), first)
    before = CpuOffer({0: 4000, 1: 0})
    fields = offering(spike, replace(what, view=calm), ReclaimOfferRules(cpu=cpu), SizingRules(), before).fields
    assert (fields["reclaimed_cpu_millis"], fields["oversold_ratio"]) == (offer, oversold)


@pytest.mark.parametrize("cpu", ["supply", "util"])
@pytest.mark.parametrize(("pool", "fresh"), [(None, True), (POOL, False)])
@pytest.mark.parametrize("last_millis", [20_000, 90_000])
def test_where_the_pool_in_force_is_not_known_the_offer_falls_with_the_advice_and_never_rises(
    cpu: Basis, pool: CpuSet | None, fresh: bool, last_millis: int
) -> None:
    last = CpuOffer({0: last_millis})
    done, offer = made(seen(pool=pool, fresh=fresh), ReclaimOfferRules(cpu=cpu), last)
    advised = done.fields()["reclaimed_cpu_millis"]
    oversold = UtilRules().max_oversold_ratio if cpu == "util" else 1.0
    assert offer.fields["reclaimed_cpu_millis"] == min(last_millis, int(advised * oversold))
    assert offer.cpu == last


def test_by_use_a_little_used_pool_is_offered_more_than_once_within_its_bound() -> None:
    rules = ReclaimOfferRules(cpu="util", util=UtilRules(max_oversold_ratio=1.2))
    last = NOTHING
    for _ in range(20):
        _, offer = made(seen(), rules, last)
        last = offer.cpu
        assert offer.fields["reclaimed_cpu_millis"] <= 44_000 * 1.2
    assert offer.fields["reclaimed_cpu_millis"] > 44_000
    assert offer.fields["oversold_ratio"] == 1.2


@pytest.mark.parametrize("what", [seen(pool=None), seen(others_percent=None), seen(used_cores=None), seen(fresh=False)],
                         ids=["no allocation", "no CPU figures", "no use", "stale"])  # fmt: skip
@pytest.mark.parametrize("rule", ["supply", "util"])
def test_what_is_not_known_adds_nothing(what: OfferInputs, rule: Basis) -> None:
    last = CpuOffer({0: 5000, 1: 5000}, {0: 22_000, 1: 22_000})
    _, offer = made(what, ReclaimOfferRules(cpu=rule), last)
    assert offer.fields["reclaimed_cpu_millis"] <= 10_000


@given(st.integers(0, 100), st.floats(0, 48), st.sampled_from(["pool", "supply", "util"]), st.integers(1, 99))
def test_no_rule_offers_more_than_the_advice_allows(percent: int, used: float, rule: Basis, free_gib: int) -> None:
    done, offer = made(
        seen(others_percent=percent, used_cores=used, free_gib=free_gib),
        ReclaimOfferRules(cpu=rule, memory="numa_aware"),
    )
    fields = offer.fields
    assert fields["reclaimed_cpu_millis"] <= 44_000 * fields.get("oversold_ratio", 1.0)
    assert fields["reclaimed_memory_bytes"] <= done.reclaimed_memory_bytes


def test_page_cache_goes_when_memory_is_short_and_only_then() -> None:
    _, calm = made(seen(free_gib=60, cache_gib=10), ReclaimOfferRules())
    assert calm.fields["drop_cache"] == ()
    _, short = made(seen(free_gib=1, cache_gib=10), ReclaimOfferRules())
    (drop,) = short.fields["drop_cache"]
    assert (drop.uid, drop.bytes <= 256 << 20) == ("b1", True)
    _, off = made(seen(free_gib=1, cache_gib=10), ReclaimOfferRules(reap_cache=False))
    assert "drop_cache" not in off.fields
