"""What each NUMA node uses: CPU as parts that add up, memory that cannot be had back, nothing that is not known."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.core.node_metric.collect_policy import CollectPolicy, MemoryCollectPolicy
from services.reporter.core.node_metric.figures import NodeMetricFigures, node_metric_figures
from services.reporter.core.node_metric.numa_usage import numa_cpu_millis, numa_memory_bytes
from services.reporter.core.node_metric.status import node_metric_status
from services.reporter.core.node_metric.usage_windows import UsageWindows, UsedResources
from shared.contracts.sample import CpuUsage, NodeReading, NodeSample, NumaReading

GIB = 1 << 30
ENVELOPE = {"node": "n1", "boot_id": "0" * 16, "sent_at": "2026-01-01T00:00:00Z", "seq": 1, "window_s": 1.0}
MEMORY = {"memory_total_bytes": 10 * GIB, "memory_free_bytes": 4 * GIB, "active_file_bytes": GIB,
          "inactive_file_bytes": GIB, "slab_reclaimable_bytes": GIB}  # fmt: skip


def numa(number: int, cpus: str, **over: Any) -> NumaReading:
    return NumaReading.model_validate({"numa": number, "cpus": cpus, **MEMORY} | over)


def sample(*busy: int, cores: float | None = 2.0, numas: tuple[NumaReading, ...] = ()) -> NodeSample:
    """Of a machine whose CPUs are busy for so many percent."""
    cpus = CpuUsage(cpus=f"0-{len(busy) - 1}", busy_percent=busy) if busy else None
    node = NodeReading(online_cpus="0-3", cpu_usage_cores=cores, cpus=cpus, memory_total_bytes=20 * GIB,
                       memory_available_bytes=10 * GIB)  # fmt: skip
    return NodeSample.model_validate(
        ENVELOPE | {"node_reading": node, "numas": numas or (numa(0, "0-1"), numa(1, "2-3"))}
    )


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        pytest.param(sample(100, 50, 25, 25), {0: 1500, 1: 500}, id="by how busy their CPUs are"),
        pytest.param(sample(0, 0, 0, 0, cores=0.01), {0: 5, 1: 5}, id="less than a percent of any CPU"),
        pytest.param(sample(cores=2.0), {}, id="no figure of single CPUs"),
        pytest.param(sample(1, 1, 1, 1, cores=None), {}, id="no figure of the node"),
        pytest.param(sample(1, 1, 1, 1, numas=(numa(0, "0-1"),)), {}, id="a CPU that lies nowhere"),
        pytest.param(sample(100, 100, 0, 0, numas=(numa(0, "0-3"), numa(1, ""))), {0: 2000, 1: 0}, id="memory alone"),
    ],
)
def test_cpu_by_numa_node(seen: NodeSample, found: dict[int, int]) -> None:
    assert numa_cpu_millis(seen) == found


@given(st.lists(st.integers(0, 100), min_size=4, max_size=4), st.integers(0, 4000))
def test_law_parts_of_cpu_add_up_to_what_the_node_uses(busy: list[int], cpu_millis: int) -> None:
    assert sum(numa_cpu_millis(sample(*busy, cores=cpu_millis / 1000)).values()) == cpu_millis


@pytest.mark.parametrize(
    ("policy", "over", "found"),
    [
        ("usageWithoutPageCache", {}, 3 * GIB),
        ("usageWithPageCache", {}, 6 * GIB),
        ("usageWithoutPageCache", {"slab_reclaimable_bytes": None}, None),
        ("usageWithoutPageCache", {"active_file_bytes": None}, None),
        ("usageWithPageCache", {"memory_free_bytes": None}, None),
        ("usageWithoutPageCache", {"active_file_bytes": 9 * GIB}, 0),
    ],
)
def test_memory_by_numa_node(policy: MemoryCollectPolicy, over: dict[str, int | None], found: int | None) -> None:
    assert numa_memory_bytes(numa(0, "0", **over), policy) == found


def followed(*samples: NodeSample) -> NodeMetricFigures:
    windows = UsageWindows(CollectPolicy())
    for now_s, seen in enumerate(samples, start=1):
        windows.add(seen, float(now_s))
    found = node_metric_figures(windows, CollectPolicy(), float(len(samples)))
    assert found is not None
    return found


def test_means_are_told_by_numa_node_and_one_without_a_figure_is_left_out() -> None:
    blind = numa(1, "2-3", memory_free_bytes=None)
    found = followed(*(sample(100, 0, 100, 0, numas=(numa(0, "0-1"), blind)) for _ in range(3)))
    assert found.numas == ((0, UsedResources(1000, 3 * GIB)),)
    told = node_metric_status(found, datetime(2026, 1, 1, tzinfo=UTC))["nodeMetric"]["numaUsages"]
    assert told == [{"numaNodeID": 0, "nodeUsage": {"resources": {"cpu": "1", "memory": str(3 * GIB)}}}]


def test_a_numa_node_that_is_gone_is_forgotten_and_a_moved_load_is_a_change() -> None:
    left, right = sample(100, 100, 0, 0), sample(0, 0, 100, 100)
    assert followed(left).differs(followed(right), 5)
    alone = sample(100, 100, 0, 0, numas=(numa(0, "0-3"),))
    assert [number for number, _ in followed(left, alone).numas] == [0]


def test_a_machine_that_tells_no_numa_nodes_has_no_such_figures() -> None:
    node = sample(100).node_reading
    found = followed(NodeSample.model_validate(ENVELOPE | {"node_reading": node}))
    assert found.numas == ()
    assert "numaUsages" not in node_metric_status(found, datetime(2026, 1, 1, tzinfo=UTC))["nodeMetric"]
