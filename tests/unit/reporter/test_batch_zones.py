"""Batch resources by NUMA node: parts that add up, lie where batch pods run, and exceed nobody's memory."""

from collections.abc import Mapping
from typing import Any

import pytest
from fixture_types import NewAllocation, NewSample
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.batch_node_offer import BatchNodeOffer
from services.reporter.core.batch_zones import batch_by_numa
from services.reporter.core.field import FieldSettings, FieldView, NumaShare, Offered
from services.reporter.fields import topology
from services.reporter.offer_over_time import ColocationInput
from services.reporter.settings import ReporterSettings
from shared.contracts.allocation import Allocation, PoolAllocation
from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import BATCH_CPU, BATCH_MEMORY, Pod
from shared.contracts.sample import ContainerReading, GroupNuma, NodeReading, NodeSample, NumaReading, PodReading

GIB = 1 << 30
ENVELOPE = {"node": "n1", "boot_id": "0" * 16, "sent_at": "2026-01-01T00:00:00Z", "seq": 1}


def numa(number: int, cpus: str = "", total: int | None = 100, used: int = 0, files: int | None = 0) -> NumaReading:
    """Amounts in GiB; `used` beside pages of files and what else can be had back."""
    return NumaReading(
        numa=number,
        cpus=cpus,
        memory_total_bytes=None if total is None else total * GIB,
        memory_free_bytes=None if total is None else (total - used - (files or 0)) * GIB,
        active_file_bytes=None if files is None else files * GIB // 2,
        inactive_file_bytes=None if files is None else files * GIB // 4,
        slab_reclaimable_bytes=None if files is None else files * GIB // 4,
    )


def sampled(*numas: NumaReading, pods: tuple[PodReading, ...] = ()) -> NodeSample:
    return NodeSample.model_validate(
        ENVELOPE | {"node_reading": NodeReading(online_cpus="0-47"), "numas": numas, "pods": pods}
    )


def pool(cpus: str | None) -> Allocation:
    pools = () if cpus is None else (PoolAllocation(pool="reclaim", cpus=cpus),)
    return Allocation.model_validate(ENVELOPE | {"status": "applied", "pools": pools})


def held(on: int, gib: int, qos: str) -> PodReading:
    spread = (GroupNuma(numa=on, anon_bytes=gib * GIB, file_bytes=GIB),)
    pod = Pod.model_validate({"uid": "aa", "name": "p", "qos": qos})
    return PodReading(pod=pod, containers=(ContainerReading(name="c", memory_numa=spread),))


def shares(*numas: NumaReading, pods: tuple[PodReading, ...] = (), gib: int = 40, percent: int = 100) -> list[float]:
    """The memory that each NUMA node has, in GiB."""
    found = batch_by_numa(Offered(1000, gib * GIB), sampled(*numas, pods=pods), pool("0-1"), percent)
    return [-1 if one.memory_bytes is None else round(one.memory_bytes / GIB, 2) for one in found.values()]


def test_cpu_lies_where_the_reclaimed_pool_does() -> None:
    node = sampled(numa(0, "0-11"), numa(1, "12-23"), numa(2))
    found = batch_by_numa(Offered(4001, 0), node, pool("0-2,12-20"), 65)
    assert [one.cpu_millis for one in found.values()] == [1000, 3001, 0]


def test_memory_lies_where_it_is_idle() -> None:
    assert shares(numa(0, "0", used=20), numa(1, "1", used=80)) == [32, 8]
    # Pages of files can be had.
    assert shares(numa(0, "0", used=20), numa(1, "1", used=20, files=60)) == [20, 20]
    # Of each NUMA node the part that is never lent goes off.
    assert shares(numa(0, "0", used=20), numa(1, "1", used=60), percent=60) == [40, 0]


@pytest.mark.parametrize(("qos", "found"), [("reclaimed_cores", [20, 20]), ("shared_cores", [32, 8])])
def test_what_batch_pods_hold_is_theirs_and_what_tenants_hold_is_not(qos: str, found: list[float]) -> None:
    assert shares(numa(0, "0", used=20), numa(1, "1", used=80), pods=(held(1, 60, qos),)) == found


def test_where_less_is_idle_than_is_offered_no_numa_node_gets_more_than_it_has() -> None:
    assert shares(numa(0, "0", total=10, used=9), numa(1, "1", total=90, used=90), gib=50) == [5, 45]


def test_what_is_not_known_is_left_out_of_all() -> None:
    known, unknown = numa(0, "0-1"), numa(1, "2-3", total=None)
    found = batch_by_numa(Offered(1000, GIB), sampled(known, unknown), pool("0-3"), 65)
    assert found == {0: NumaShare(500, None), 1: NumaShare(500, None)}
    found = batch_by_numa(Offered(1000, GIB), sampled(known, numa(1, "2-3")), pool(None), 65)
    assert found == {0: NumaShare(None, GIB // 2), 1: NumaShare(None, GIB // 2)}
    assert batch_by_numa(Offered(1000, GIB), sampled(), pool("0"), 65) == {}


NUMAS = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 64), st.integers(0, 100)), min_size=1, max_size=8)


def machine(shapes: list[tuple[int, int, int]]) -> list[NumaReading]:
    """CPUs, GiB and percent in use of each NUMA node."""
    found, first = [], 0
    for number, (cpus, total, used) in enumerate(shapes):
        listed = f"{first}-{first + cpus - 1}" if cpus else ""
        found.append(numa(number, listed, total, total * used // 100))
        first += cpus
    return found


@given(NUMAS, st.integers(0, 64_000), st.integers(0, 100), st.integers(0, 100))
def test_law_shares_add_up_and_no_numa_node_gives_more_memory_than_it_has(
    shapes: list[tuple[int, int, int]], cpu_millis: int, part: int, percent: int
) -> None:
    numas = machine(shapes)
    cpus = sum(cpus for cpus, _, _ in shapes)
    offered = Offered(cpu_millis, sum(total for _, total, _ in shapes) * GIB * part // 100)
    given = pool(f"0-{cpus - 1}" if cpus else "")
    found = batch_by_numa(offered, sampled(*numas), given, percent)
    view = FieldView(
        now=sampled().sent_at, allocation=given, sample=sampled(*numas), batch=offered, batch_by_numa=found
    )
    told = zones(topology.fragment(view))
    if cpus:
        assert sum(parse_units(zone[BATCH_CPU]) for zone in told.values()) == cpu_millis
    assert sum(parse_units(zone[BATCH_MEMORY]) for zone in told.values()) == offered.memory_bytes
    for number, (_, total, _) in enumerate(shapes):
        assert 0 <= parse_units(told[number][BATCH_MEMORY]) <= total * GIB


def zones(fragment: Mapping[str, Any] | None) -> dict[int, Mapping[str, str]]:
    """By number, what is allocatable; the same as the capacity, as far as batch resources go."""
    assert fragment is not None
    found = {}
    for zone in fragment["status"]["topologyZone"]:
        resources = zone["resources"]
        assert resources["capacity"][BATCH_MEMORY] == resources["allocatable"][BATCH_MEMORY]
        found[int(zone["name"])] = resources["allocatable"]
    return found


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"enabled": True}, False), ({"enabled": True, "by_numa": True}, True), ({"by_numa": True}, False)],
    ids=["off by default", "on", "nothing is offered"],
)
def test_it_is_told_where_both_settings_say_so(
    sample: NewSample, allocation: NewAllocation, settings: dict[str, bool], told: bool
) -> None:
    offer = BatchNodeOffer(ReporterSettings.model_validate({"batch": settings}))
    seen = ColocationInput(allocation(), sample(), 0.0, None, in_a_cluster=False)
    reported = offer.smoothed(seen, Offered(0, 0), 0.0)
    found = offer.by_numa(seen)
    assert bool(found) is told
    if reported is not None and told:
        assert sum(one.cpu_millis or 0 for one in found.values()) == reported.cpu_millis


def test_shares_that_move_are_no_reason_to_write(sample: NewSample, allocation: NewAllocation) -> None:
    def fragment(millis: int) -> Mapping[str, Any] | None:
        parts = {0: NumaShare(millis, millis), 1: NumaShare(millis, millis)}
        return topology.fragment(FieldView(sample().sent_at, allocation(), sample=sample(), batch_by_numa=parts))

    assert fragment(1) != fragment(2)
    assert not topology.urgent(fragment(1), fragment(2), FieldSettings())
