"""Memory offered to reclaimed pods and the limit of their cgroup: the rules one by one, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.demand.memory import estimate_bytes
from services.advisor.core.memory.limit import node_limit_bytes
from services.advisor.core.memory.offer import canonical_offer_bytes, offered_bytes
from services.advisor.core.model.figures import NodeMemory, Resident
from services.advisor.core.model.machine import critical_memory_bytes, reserved_memory_bytes, unknown_memory_bytes
from shared.contracts.pod import QosClass

GIB = 1 << 30
TUTORIAL_BYTES = 195_924_424 << 10
byte_counts = st.integers(0, 1 << 45)
nodes = st.builds(
    NodeMemory,
    total_bytes=st.none() | byte_counts,
    available_bytes=st.none() | byte_counts,
    reclaimed_used_bytes=st.none() | byte_counts,
    watermark_scale_factor=st.none() | st.integers(0, 1000),
)


@pytest.mark.parametrize(
    ("qos", "rss", "cache", "asked", "want"),
    [
        pytest.param("shared_cores", 100, 50, 7, 165, id="resident and cached, with a tenth"),
        pytest.param("dedicated_cores", 1, None, 7, 2, id="rounded up"),
        pytest.param("system_cores", 100, 50, 7, 100, id="system: resident alone"),
        pytest.param("reclaimed_cores", 100, 50, 7, 0, id="reclaimed: nothing"),
        pytest.param("shared_cores", None, None, 7, 7, id="not measured: the request"),
        pytest.param("shared_cores", 0, 0, 7, 7, id="0 counts as not measured"),
        pytest.param("shared_cores", None, None, 0, 8, id="nothing known"),
        pytest.param("system_cores", None, 50, 0, 8, id="system: nothing known"),
        pytest.param("shared_cores", None, 10, 0, 11, id="one figure is enough"),
    ],
)
def test_what_one_container_counts(qos: QosClass, rss: int | None, cache: int | None, asked: int, want: int) -> None:
    assert estimate_bytes(qos, Resident(rss, cache), asked, unknown_bytes=8) == want


@pytest.mark.parametrize(
    ("total", "reserved", "critical", "unknown"),
    [
        pytest.param(TUTORIAL_BYTES, 5 * GIB, 4 * GIB, 8 * GIB, id="the tutorial's node"),
        pytest.param(8 * GIB, GIB, GIB, 2 * GIB, id="8 GiB"),
        pytest.param(0, 0, 0, 0, id="nothing"),
    ],
)
def test_what_is_kept_back_shrinks_with_the_machine(total: int, reserved: int, critical: int, unknown: int) -> None:
    found = (reserved_memory_bytes(total), critical_memory_bytes(total), unknown_memory_bytes(total))
    assert found == (reserved, critical, unknown)


@pytest.mark.parametrize(
    ("node", "tenants", "before", "want"),
    [
        pytest.param(NodeMemory(TUTORIAL_BYTES, TUTORIAL_BYTES, 0), 0, 0, 195_257_901_056, id="the tutorial's figure"),
        pytest.param(NodeMemory(100, 100, 0), 30, 0, 60, id="reserve and tenants are taken off"),
        pytest.param(NodeMemory(100, 20, 15), 30, 0, 35, id="the system uses more than the reserve"),
        pytest.param(NodeMemory(100, 20, None), 30, 0, 20, id="use of reclaimed pods unknown"),
        pytest.param(NodeMemory(100, 100, 0), 200, 50, 0, id="never below 0"),
        pytest.param(NodeMemory(None, 100, 0), 0, 50, 50, id="total unknown: the offer stays"),
        pytest.param(NodeMemory(100, None, 0), 0, 50, 50, id="available unknown: the offer does not rise"),
        pytest.param(NodeMemory(100, None, 0), 70, 50, 20, id="available unknown: the offer may fall"),
        pytest.param(NodeMemory(100, None, 0), 0, 0, 0, id="available unknown and nothing offered yet"),
    ],
)
def test_the_offer_is_what_the_tenants_leave_and_the_kernel_has(
    node: NodeMemory, tenants: int, before: int, want: int
) -> None:
    reserved = 5 * GIB if node.total_bytes == TUTORIAL_BYTES else 10
    assert offered_bytes(node, tenants, reserved, before) == want


@given(nodes, byte_counts, byte_counts, byte_counts)
def test_the_offer_is_never_more_than_what_is_there(node: NodeMemory, tenants: int, reserved: int, before: int) -> None:
    offer = offered_bytes(node, tenants, reserved, before)
    assert offer >= 0
    if node.total_bytes is not None:
        assert offer <= node.total_bytes
    if node.total_bytes is not None and node.available_bytes is not None:
        assert offer <= node.available_bytes + (node.reclaimed_used_bytes or 0)
    else:
        assert offer <= before


@given(nodes, byte_counts, byte_counts, byte_counts, byte_counts)
def test_more_for_tenants_never_leaves_more_to_offer(
    node: NodeMemory, tenants: int, more: int, reserved: int, before: int
) -> None:
    assert offered_bytes(node, tenants + more, reserved, before) <= offered_bytes(node, tenants, reserved, before)


@given(nodes)
def test_a_limit_is_never_below_the_use_and_missing_figures_leave_it_alone(node: NodeMemory) -> None:
    limit = node_limit_bytes(node, 100)
    known = None not in (node.total_bytes, node.available_bytes, node.reclaimed_used_bytes, node.watermark_scale_factor)
    assert (limit is not None) == known
    if limit is not None:
        used, total = present(node.reclaimed_used_bytes), present(node.total_bytes)
        assert limit >= used
        assert limit <= used + present(node.available_bytes) + max(1, total // 512)


def test_a_limit_does_not_follow_every_page() -> None:
    limits = {
        node_limit_bytes(NodeMemory(64 * GIB, 40 * GIB + page * 4096, GIB, 10), 4 * GIB)
        for page in range(0, 10_000, 100)
    }
    assert len(limits) <= 2


def test_shared_memory_that_is_told_by_itself_counts_for_tenants_and_not_for_the_system() -> None:
    figures = Resident(100, 50, 50)
    assert estimate_bytes("shared_cores", figures, 0, 8) == 220
    assert estimate_bytes("system_cores", figures, 0, 8) == 100


@given(byte_counts, byte_counts, byte_counts, st.floats(0, 1 << 45))
def test_a_buffer_adds_to_the_offer_and_never_lifts_it_above_total_without_reserve(
    total: int, reserved: int, tenants: int, buffer: float
) -> None:
    plain, more = (canonical_offer_bytes(total, reserved, tenants, extra) for extra in (0.0, buffer))
    assert 0 <= plain <= more <= max(0, total - reserved)


def test_a_limit_of_the_last_round_is_left_in_steps() -> None:
    node = NodeMemory(1600, 100, 50, 0)
    assert node_limit_bytes(node, 100) == 51
    assert node_limit_bytes(node, 100, before_bytes=900) == 801
    assert node_limit_bytes(NodeMemory(1600, 1000, 50, 0), 100, before_bytes=300) == 951
