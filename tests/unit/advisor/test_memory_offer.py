"""The NUMA-aware memory offer of a sample, and the page cache that is dropped."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from advisor_world import MakePod, MakeSample

from services.advisor.core.memory.numa import NumaRules
from services.advisor.core.model.containers import Containers
from services.advisor.core.model.figures import Figures, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.offer.memory import cache_to_drop, numa_offer_bytes
from shared.contracts.sample import NodeSample, NumaReading, PoolReading

BOUNDS = Bounds.of(48, smt=True)
GIB = 1 << 30
Short = Callable[..., tuple[NodeSample, View, dict[str, str]]]
"""Makes a sample, its view and the pods' UIDs by name: bytes that are available, the node's readings by name."""


def numa(number: int, **fields: int | None) -> NumaReading:
    figures = {"memory_total_bytes": 1000, "memory_free_bytes": 400, "inactive_file_bytes": 200}
    return NumaReading(numa=number, **figures | fields)


def offered(sample: NodeSample, most: int = 10_000, cache_ratio: float = 0.5) -> dict[int, int] | None:
    return numa_offer_bytes(sample, view_of(sample, BOUNDS), 100, NumaRules(cache_ratio=cache_ratio), most)


def test_the_offer_by_numa_node(sample: MakeSample) -> None:
    node = {"watermark_scale_factor": 100}
    assert offered(sample(node=node, numas=(numa(1), numa(0)))) == {0: 440, 1: 440}


def test_it_is_within_the_limit_of_the_reclaimed_pods_and_within_the_canonical_offer(sample: MakeSample) -> None:
    node = {"watermark_scale_factor": 100}
    limited = sample(node=node, numas=(numa(0), numa(1)), pools=(PoolReading(pool="reclaim", memory_limit_bytes=200),))
    assert offered(limited) == {0: 200, 1: 200}
    assert offered(limited, most=100) == {0: 50, 1: 50}


@pytest.mark.parametrize(
    ("node", "numas"),
    [
        pytest.param({"watermark_scale_factor": None}, (numa(0),), id="the scale factor"),
        pytest.param({}, (), id="no NUMA node"),
        pytest.param({}, (numa(0), numa(1, memory_free_bytes=None)), id="free memory"),
        pytest.param({}, (numa(0), numa(1, inactive_file_bytes=None)), id="inactive files"),
        pytest.param({}, (numa(0), numa(1, memory_total_bytes=None)), id="a total"),
    ],
)
def test_where_a_figure_is_missing_the_canonical_rule_decides(
    sample: MakeSample, node: dict[str, None], numas: tuple[NumaReading, ...]
) -> None:
    assert offered(sample(node=node, numas=numas)) is None


@pytest.mark.parametrize(
    ("placed", "offers"),
    [
        pytest.param({"exclusive": True, "dedicated": True, "cpus_per_numa": ((0, 4),)}, (False, True), id="its own"),
        pytest.param({"exclusive": False, "dedicated": True, "cpus_per_numa": ((0, 4),)}, (True, True), id="beside it"),
        pytest.param({"exclusive": True, "cpus_per_numa": ((0, 4),)}, (True, True), id="no CPUs of its own"),
        pytest.param({"exclusive": True, "dedicated": True}, (True, True), id="not known where"),
    ],
)
def test_no_memory_is_offered_of_numa_nodes_that_a_container_has_for_itself(
    sample: MakeSample, placed: dict[str, Any], offers: tuple[bool, bool]
) -> None:
    seen = sample(node={"watermark_scale_factor": 100}, numas=(numa(0), numa(1)))
    alone = ContainerView("default/db", "aa", "main", "dedicated_cores", 4.0, 0, Figures(), Resident(), **placed)
    view = replace(view_of(seen, BOUNDS), containers=Containers([alone]))
    found = numa_offer_bytes(seen, view, 100, NumaRules(), 10_000)
    assert found is not None
    assert tuple(amount > 0 for amount in found.values()) == offers


def test_on_an_old_view_the_canonical_rule_decides(sample: MakeSample) -> None:
    seen = sample(numas=(numa(0),))
    assert numa_offer_bytes(seen, view_of(seen, BOUNDS).blind(), 0, NumaRules(), 1000) is None


@pytest.fixture
def short(sample: MakeSample, pod: MakePod) -> Short:
    """1 GiB available, batch work holds page cache."""

    def make(available: int | None = GIB, **node: int | None) -> tuple[NodeSample, View, dict[str, str]]:
        pods = (
            pod("large", "reclaimed_cores", memory_cache_bytes=8 * GIB, memory_shmem_bytes=2 * GIB),
            pod("small", "reclaimed_cores", memory_cache_bytes=2 * GIB),
            pod("gone", "reclaimed_cores", phase="Succeeded", memory_cache_bytes=9 * GIB),
            pod("web", "shared_cores", memory_cache_bytes=50 * GIB),
        )
        seen = sample(*pods, node={"memory_available_bytes": available, **node})
        uids = {reading.pod.name: reading.pod.uid for reading in pods}
        return seen, view_of(seen, BOUNDS), uids

    return make


def test_batch_work_drops_its_page_cache_largest_first_and_in_steps(short: Short) -> None:
    seen, view, uids = short()
    assert cache_to_drop(seen, view, 4 * GIB, most_bytes=5 * GIB) == {uids["large"]: 5 * GIB, uids["small"]: 2 * GIB}


@pytest.mark.parametrize(
    ("available", "node", "fresh"),
    [
        pytest.param(4 * GIB, {}, True, id="enough is available"),
        pytest.param(None, {}, True, id="not known"),
        pytest.param(GIB, {"watermark_scale_factor": None}, True, id="the factor is not known"),
        pytest.param(GIB, {}, False, id="too old"),
    ],
)
def test_nothing_is_dropped_without_need_or_without_knowing(
    short: Short, available: int | None, node: dict[str, None], fresh: bool
) -> None:
    seen, view, _ = short(available, **node)
    assert cache_to_drop(seen, view if fresh else view.blind(), 4 * GIB) == {}
