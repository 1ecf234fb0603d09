"""Units: every setting from what Sublet means to what the kernel reads, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cgroups.block_io import DISK_KNOBS, IO_KNOBS
from shared.core.cgroups.knobs import (
    MAX_SHARES,
    MIN_SHARES,
    UNLIMITED,
    V1_FILES,
    V2_FILES,
    Knob,
    Version,
    from_file,
    same,
    shares_of_millis,
    to_file,
    weight_of_shares,
)


@pytest.mark.parametrize(
    ("knob", "value", "v1", "v2"),
    [
        (Knob.CPUS, "0-3,8", "0-3,8", "0-3,8"),
        (Knob.CPU_QUOTA, 1500, "150000", "150000 100000"),
        (Knob.CPU_QUOTA, UNLIMITED, "-1", "max 100000"),
        (Knob.CPU_QUOTA, 1, "1000", "1000 100000"),
        (Knob.CPU_BURST, 1500, "150000", "150000"),
        (Knob.CPU_BURST, 0, "0", "0"),
        (Knob.CPU_SHARES, 1024, "1024", "39"),
        (Knob.CPU_IDLE, 1, "1", "1"),
        (Knob.MEMORY_MAX, 4096, "4096", "4096"),
        (Knob.MEMORY_MAX, UNLIMITED, "-1", "max"),
    ],
)
def test_the_text_of_a_value(knob: Knob, value: int | str, v1: str, v2: str) -> None:
    assert (to_file(knob, value, 1), to_file(knob, value, 2)) == (v1, v2)
    assert same(knob, value, v1 + "\n", 1)
    assert same(knob, value, v2 + "\n", 2)


@given(st.sampled_from([Knob.CPU_QUOTA, Knob.CPU_BURST]), st.integers(10, 8_192_000), st.sampled_from([1, 2]))
def test_milli_cores_come_back_as_they_went(knob: Knob, millis: int, version: Version) -> None:
    assert from_file(knob, to_file(knob, millis, version), version) == millis


@given(st.integers(-5, 10_000_000), st.integers(-5, 10_000_000))
def test_shares_and_weights_are_within_the_kernels_bounds_and_keep_their_order(one: int, other: int) -> None:
    for millis in (one, other):
        assert MIN_SHARES <= shares_of_millis(millis) <= MAX_SHARES
        assert 1 <= weight_of_shares(shares_of_millis(millis)) <= 10_000
    if one <= other:
        assert weight_of_shares(shares_of_millis(one)) <= weight_of_shares(shares_of_millis(other))


def test_what_v1_prints_for_no_limit_is_no_limit() -> None:
    assert from_file(Knob.MEMORY_MAX, "9223372036854771712\n", 1) == UNLIMITED


def test_the_kernel_rounds_a_memory_limit_down_to_pages_and_that_is_the_same() -> None:
    assert same(Knob.MEMORY_MAX, 10_000, "8192\n", 2)
    assert not same(Knob.MEMORY_MAX, 10_000, "4096\n", 2)


def test_every_setting_has_a_file_in_one_version_at_least() -> None:
    assert {*V1_FILES, *V2_FILES} | {*IO_KNOBS, *DISK_KNOBS} == set(Knob)
    assert not {*V1_FILES, *V2_FILES} & {*IO_KNOBS, *DISK_KNOBS}
