"""The memory guard: what reclaimed pods may use at all."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.memory.limit import MemoryZone, guarded_limit_bytes, next_limit_bytes
from services.advisor.whatif.memory.guard import high_bytes
from shared.errors import Refused

byte_counts = st.integers(0, 1 << 45)
zones = st.lists(
    st.builds(MemoryZone, byte_counts, byte_counts, byte_counts, st.none() | byte_counts), min_size=1, max_size=8
)


@pytest.mark.parametrize(
    ("zones", "scale", "critical", "factor", "want"),
    [
        pytest.param([MemoryZone(10_000, 500, 7)], 100, 50, 1.0, 407, id="the watermark by scale: 100"),
        pytest.param([MemoryZone(10_000, 500, 7)], 100, 200, 1.0, 307, id="the smallest watermark is larger"),
        pytest.param([MemoryZone(10_000, 500, 7)], 100, 50, 2.0, 307, id="the factor is on the watermark"),
        pytest.param(
            [MemoryZone(10_000, 500, 7)], 100, 200, 1.5, 307, id="the factor is not on the smallest watermark"
        ),
        pytest.param([MemoryZone(10_000, 500, 7, 150)], 100, 50, 1.0, 357, id="the watermark that the kernel tells"),
        pytest.param([MemoryZone(10_000, 500, 7, 0)], 100, 50, 1.0, 457, id="a told watermark of 0 is one"),
        pytest.param([MemoryZone(10_000, 99, 7)], 100, 50, 1.0, 7, id="nothing to spare: what is used"),
        pytest.param(
            [MemoryZone(10_000, 99, 7), MemoryZone(10_000, 500, 1)], 100, 50, 1.0, 408, id="each zone for itself"
        ),
    ],
)
def test_the_limit_is_the_use_and_what_lies_above_the_critical_watermark(
    zones: list[MemoryZone], scale: int, critical: int, factor: float, want: int
) -> None:
    assert guarded_limit_bytes(zones, scale, critical, factor) == want


@pytest.mark.parametrize(
    "zones", [[], [MemoryZone(100, 50, 1), MemoryZone(100, 50, None)]], ids=["no zone", "unknown use"]
)
def test_without_the_use_of_every_zone_there_is_no_limit(zones: list[MemoryZone]) -> None:
    with pytest.raises(Refused) as refusal:
        guarded_limit_bytes(zones, 10, 1)
    assert refusal.value.reason == "missing_metric"


@given(zones, st.integers(0, 1000), byte_counts, st.floats(0, 4), st.randoms())
def test_a_limit_is_never_below_the_use_nor_above_what_is_there(
    zones: list[MemoryZone], scale: int, critical: int, factor: float, rng: Random
) -> None:
    limit = guarded_limit_bytes(zones, scale, critical, factor)
    used = sum(present(zone.reclaim_used_bytes) for zone in zones)
    assert used <= limit <= used + sum(zone.free_bytes for zone in zones)
    assert high_bytes(limit) <= limit
    shuffled = list(zones)
    rng.shuffle(shuffled)
    assert guarded_limit_bytes(shuffled, scale, critical, factor) == limit


@given(zones, st.integers(0, 1000), byte_counts, byte_counts)
def test_the_more_is_kept_free_the_lower_the_limit(
    zones: list[MemoryZone], scale: int, critical: int, more: int
) -> None:
    assert guarded_limit_bytes(zones, scale, critical + more) <= guarded_limit_bytes(zones, scale, critical)


@pytest.mark.parametrize(
    ("wanted", "before", "used", "want"),
    [
        pytest.param(500, 300, 0, 500, id="up at once"),
        pytest.param(100, 300, 0, 250, id="down by a step"),
        pytest.param(280, 300, 0, 280, id="less than a step"),
        pytest.param(100, 300, 290, 290, id="never below the use"),
        pytest.param(100, None, 290, 290, id="nor where there was no limit"),
        pytest.param(100, None, 20, 100, id="the first limit"),
    ],
)
def test_a_limit_goes_up_at_once_and_down_in_steps(wanted: int, before: int | None, used: int, want: int) -> None:
    assert next_limit_bytes(wanted, before, used, step_bytes=50) == want


@given(byte_counts, byte_counts, byte_counts, st.integers(1, 1 << 40))
def test_steps_lead_to_what_is_wanted_and_never_below_the_use(wanted: int, before: int, used: int, step: int) -> None:
    after = next_limit_bytes(wanted, before, used, step)
    assert after >= used
    assert after >= min(wanted, before - step)
    assert after in (wanted, used, before - step)
    assert next_limit_bytes(wanted, wanted, 0, step) == wanted
