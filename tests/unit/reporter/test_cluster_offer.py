"""The offer on the bus: what stands on the Node, every fall at once, uses only while they are new."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_samples import GIB, applied, placed, running, sampled
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.cluster.report import KEPT, WINDOW_S
from services.reporter.core.cluster.offer import (
    OfferNow,
    cannot_wait,
    numas,
    offer_now,
    pod_uses,
    shorter,
    uses,
    with_shares,
)
from services.reporter.core.field import FieldView, Offered
from services.reporter.core.node_metric.usage_windows import UsageWindows
from shared.contracts.allocation import PoolAllocation
from shared.contracts.cluster.offer import MAX_PODS, OfferedNuma, PodUses, ResourceAmounts
from shared.contracts.sample import NodeSample, NumaReading

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RISE = Offered(300, GIB)
amounts = st.none() | st.builds(Offered, st.integers(0, 2000), st.integers(0, 4 * GIB))


def said(*amounts_of: Offered | None, mode: Any = "enforce", stale: bool = False) -> OfferNow:
    reclaimed, batch, mid = (*amounts_of, None, None, None)[:3]
    return OfferNow(mode, stale, reclaimed, batch, mid)


def test_it_is_what_is_reported_of_the_allocation() -> None:
    view = FieldView(now=NOW, allocation=applied(9000), allocation_fresh=True, offered=Offered(4000, GIB))
    assert offer_now(view, "enforce", withdrawn=False) == said(Offered(4000, GIB))


def test_without_smoothing_it_is_the_allocation_and_without_one_it_is_not_known() -> None:
    fresh = FieldView(now=NOW, allocation=applied(9000), allocation_fresh=True)
    assert offer_now(fresh, "enforce", withdrawn=False).reclaimed == Offered(9000, GIB)
    assert offer_now(FieldView(now=NOW), "enforce", withdrawn=False) == said(stale=True)


def test_what_central_withdrew_is_not_for_sale_and_what_was_never_offered_is_no_offer_of_nothing() -> None:
    view = FieldView(now=NOW, allocation=applied(), allocation_fresh=True, batch=Offered(100, GIB))
    assert offer_now(view, "enforce", withdrawn=True) == said(Offered(0, 0), Offered(0, 0), None)


@pytest.mark.parametrize(
    ("before", "now", "at_once"),
    [
        (None, said(), True),
        (said(Offered(1000, GIB)), said(Offered(1000, GIB)), False),
        (said(Offered(1000, GIB)), said(Offered(999, GIB)), True),
        (said(Offered(1000, GIB)), said(Offered(1299, GIB)), False),
        (said(Offered(1000, GIB)), said(Offered(1300, GIB)), True),
        (said(Offered(1000, GIB)), said(Offered(1000, 2 * GIB)), True),
        (said(Offered(0, GIB)), said(Offered(1, GIB)), True),
        (said(Offered(0, 0)), said(Offered(0, 0)), False),
        (said(None), said(Offered(0, 0)), True),
        (said(Offered(0, 0)), said(None), True),
        (said(Offered(1, 1), Offered(5, 5)), said(Offered(1, 1), Offered(4, 5)), True),
        (said(Offered(1, 1)), said(Offered(1, 1), stale=True), True),
        (said(Offered(1, 1)), said(Offered(1, 1), mode="observe"), True),
    ],
)
def test_what_cannot_wait(before: OfferNow | None, now: OfferNow, at_once: bool) -> None:
    assert cannot_wait(before, now, RISE) is at_once


@given(st.lists(st.tuples(amounts, amounts, amounts), max_size=20))
def test_no_more_is_ever_believed_than_is_offered(
    passes: list[tuple[Offered | None, Offered | None, Offered | None]],
) -> None:
    heard: OfferNow | None = None
    for kinds in passes:
        now = said(*kinds)
        if cannot_wait(heard, now, RISE):
            heard = now
        assert heard is not None
        for believed, offered in zip(heard.amounts, now.amounts, strict=True):
            assert (believed is None) == (offered is None)
            assert believed is None or offered is None or believed <= offered


def numa(number: int, cpus: str, socket: int | None = 0) -> NumaReading:
    extra = {} if socket is None else {"socket": float(socket)}
    return NumaReading(numa=number, cpus=cpus, memory_total_bytes=4 * GIB, extra=extra)


def test_a_numa_node_says_what_it_has_and_who_is_bound_to_it() -> None:
    sample = sampled(running("a", "dedicated_cores"), running("b"), running("c", "reclaimed_cores"),
                     numas=(numa(1, "4-7", None), numa(0, "0-3")))  # fmt: skip
    allocation = applied(
        pools=(PoolAllocation(pool="reclaim", cpus="2-5"), PoolAllocation(pool="reserve", cpus="0")),
        pods=(placed("a", "0-1"), placed("b", "0-7"), placed("c", "4-5"), placed("d", "4")),
    )
    view = FieldView(now=NOW, allocation=allocation, allocation_fresh=True, offered=Offered(1000, GIB),
                     sample=sample, sample_fresh=True)  # fmt: skip
    now = offer_now(view, "enforce", withdrawn=False)
    first, second = with_shares(numas(view), now, view)
    assert (first.numa, first.socket, second.numa, second.socket) == (0, 0, 1, None)
    assert first.capacity == ResourceAmounts(cpu_millis=4000, memory_bytes=4 * GIB)
    assert first.allocatable == ResourceAmounts(cpu_millis=3000, memory_bytes=4 * GIB)
    assert [first.reclaimed_cpu_millis, second.reclaimed_cpu_millis] == [500, 500]
    (bound,) = first.allocations
    assert (bound.uid, bound.dedicated, bound.requests.cpu_millis) == ("a", True, 2000)
    assert second.allocations == (), "one spans both, one takes no NUMA node, one is not known any more"


@given(st.integers(0, 100_000), st.booleans())
def test_parts_of_the_offer_add_up_to_it(cpu_millis: int, withdrawn: bool) -> None:
    sample = sampled(numas=(numa(0, "0-3"), numa(1, "4-7")))
    allocation = applied(pools=(PoolAllocation(pool="reclaim", cpus="1-4"),))
    view = FieldView(now=NOW, allocation=allocation, allocation_fresh=True, offered=Offered(cpu_millis, GIB),
                     sample=sample, sample_fresh=True)  # fmt: skip
    now = offer_now(view, "enforce", withdrawn=withdrawn)
    parts = [zone.reclaimed_cpu_millis or 0 for zone in with_shares(numas(view), now, view)]
    assert sum(parts) == (0 if withdrawn else cpu_millis)


def test_numa_nodes_of_an_old_sample_are_not_told() -> None:
    sample = sampled(numas=(numa(0, "0-7"),))
    assert numas(FieldView(now=NOW, sample=sample)) == ()
    (zone,) = numas(FieldView(now=NOW, sample=sample, sample_fresh=True))
    assert zone.allocatable.cpu_millis is None, "without an allocation nobody knows what is reserved"


@pytest.mark.parametrize("unknown", ["allocation", "sample", "offer"])
def test_numa_nodes_have_no_share_of_what_is_not_known(unknown: str) -> None:
    sample, allocation = sampled(numas=(numa(0, "0-7"),)), applied(pools=(PoolAllocation(pool="reclaim", cpus="0-3"),))
    view = FieldView(
        now=NOW,
        allocation=None if unknown == "allocation" else allocation,
        sample=None if unknown == "sample" else sample,
        sample_fresh=True,
    )
    now = said(None if unknown == "offer" else Offered(1000, GIB))
    zones = numas(FieldView(now=NOW, sample=sample, sample_fresh=True))
    assert [zone.reclaimed_cpu_millis for zone in with_shares(zones, now, view)] == [None]


def windows(*samples: NodeSample) -> UsageWindows:
    kept = UsageWindows(KEPT)
    for place, sample in enumerate(samples):
        kept.add(sample, 2.0 * (place + 1))
    return kept


def test_pods_are_told_with_what_is_known_of_them() -> None:
    kept = windows(
        sampled(running("b", cores=None), running("a", cores=1.5), running("c", "reclaimed_cores"),
                running("d", "reclaimed_cores", labels={"koordinator.sh/priority-class": "koord-prod"}),
                running("e", priority=5500))
    )  # fmt: skip
    rows = list(pod_uses(kept, WINDOW_S, 2.0).rows())
    assert [(row.name, row.prod) for row in rows] == [
        ("p-a", True), ("p-b", True), ("p-c", False), ("p-d", True), ("p-e", False)
    ]  # fmt: skip
    assert rows[0].used == ResourceAmounts(cpu_millis=1500, memory_bytes=GIB)
    assert rows[1].used == ResourceAmounts(), "absent is not 0"


def test_a_window_is_told_once_half_of_it_was_measured() -> None:
    kept = windows(*[sampled()] * 80)
    told = uses(kept, WINDOW_S, KEPT.windows_s, 160.0)
    assert told["used"] == ResourceAmounts(cpu_millis=2000, memory_bytes=2 * GIB)
    assert [(one.window_s, one.used["p95"].cpu_millis) for one in told["windows"]] == [(300, 2000)]


def test_of_too_many_pods_the_first_are_told() -> None:
    kept = windows(sampled(*(running(f"{number:04x}") for number in range(MAX_PODS + 5))))
    pods = pod_uses(kept, WINDOW_S, 2.0)
    assert len(pods.uids) == MAX_PODS
    half = shorter({"pods": pods, "numas": (), "pods_left_out": 5})
    assert half is not None
    assert (len(half["pods"].uids), half["pods_left_out"]) == (MAX_PODS // 2, 5 + MAX_PODS // 2)


def test_one_that_is_still_too_long_leaves_out_numa_nodes_and_never_the_offer() -> None:
    fields = {"pods": PodUses(), "numas": (OfferedNuma(numa=0),), "pods_left_out": 7, "reclaimed": ResourceAmounts()}
    less = shorter(fields)
    assert less == {**fields, "numas": ()}
    assert shorter(less) is None
