"""Lines of resctrl: masks and bandwidths by the formula, what is checked before a write, and laws of both."""

import pytest
from fake_resctrl import INFO
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.resctrl.hardware import BandwidthHardware, CacheHardware, Hardware, read_hardware, vendor_of
from services.qrm.core.resctrl.schemata import (
    checked_bandwidths,
    checked_masks,
    differs,
    is_one_run,
    line_to_write,
    read_schemata,
    schemata_line,
)
from services.qrm.core.resctrl.shares import CacheShare, bandwidth_units, cache_mask, wanted_schemata, ways_of
from shared.errors import Refused

BOTH = frozenset({0, 1})
CACHE_16 = CacheHardware(BOTH, 0xFFFF, 2)
PERCENTS = BandwidthHardware(BOTH)
MACHINE = Hardware(CACHE_16, PERCENTS)


@pytest.mark.parametrize(
    ("ways", "start", "end", "mask"),
    [
        (11, 0, 30, 0xF),
        (10, 10, 80, 0xFE),
        (11, 10, 50, 0x3C),
        (11, 0, 100, 0x7FF),
        (4, 10, 20, 0),
        (4, 99, 100, 0),
        (11, -1, 30, 0),
        (11, 0, 101, 0),
        (11, 30, 30, 0),
    ],
)
def test_masks(ways: int, start: int, end: int, mask: int) -> None:
    assert cache_mask(start, end, ways) == mask


@pytest.mark.parametrize(
    ("percent", "intel", "amd"), [(100, 100, 2048), (30, 30, 48), (31, 40, 49), (1, 10, 1), (0, 0, 0), (101, 0, 0)]
)
def test_bandwidths(percent: int, intel: int, amd: int) -> None:
    assert (bandwidth_units(percent, "intel"), bandwidth_units(percent, "amd")) == (intel, amd)


@given(st.integers(1, 64), st.integers(0, 99), st.integers(1, 100), st.integers(1, 4))
def test_law_what_a_share_wants_passes_the_check(ways: int, start: int, width: int, least: int) -> None:
    cache = CacheHardware(BOTH, (1 << ways) - 1, least)
    machine = Hardware(cache, PERCENTS)
    found = wanted_schemata(CacheShare(start, min(100, start + width), width), machine)
    assert ("L3" in found.values) is ("L3" not in found.impossible)
    for resource, values in found.values.items():
        assert line_to_write(resource, values, {}, machine) == schemata_line(resource, values)
        assert line_to_write(resource, values, {resource: values}, machine) is None


@given(st.integers(0, (1 << 20) - 1))
def test_law_a_run_has_no_zero_between_ones(mask: int) -> None:
    assert is_one_run(mask) is ("0" not in f"{mask:b}".strip("0"))


@pytest.mark.parametrize("mask", [0, 0b10, 0x7F6, 0b1011])
def test_ways_that_are_not_one_block_from_the_first_on_are_refused(mask: int) -> None:
    with pytest.raises(Refused) as refused:
        ways_of(mask)
    assert refused.value.reason == "illegal_cbm"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("MB:0=f", "bad_prefix"),
        ("l3:0=f", "bad_prefix"),
        ("L3", "bad_prefix"),
        ("L3:", "bad_line"),
        ("L3:0=f;", "bad_line"),
        ("L3:0", "bad_line"),
        ("L3:0=", "bad_line"),
        ("L3:0=f;0=f", "bad_line"),
        ("L3:0=xyz", "bad_line"),
        ("L3:-1=f", "bad_line"),
        ("L3:0=0x_f", "bad_line"),
        ("L3:0=f;1=xyz;7=5", "bad_line"),
        ("L3:2=f", "bad_domain"),
        ("L3:0=1ffff", "mask_too_big"),
        ("L3:0=5", "mask_gap"),
        ("L3:0=1", "mask_too_small"),
        ("L3:0=0", "mask_too_small"),
        ("L3:0=1;1=5", "mask_too_small"),
    ],
)
def test_masks_that_no_machine_would_take_are_refused_before_a_write(line: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_masks(line, CACHE_16)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [("L3:0=50", "bad_prefix"), ("MB:0=f", "bad_line"), ("MB:9=50", "bad_domain"), ("MB:0=50;1=9", "mb_too_small")],
)
def test_so_are_bandwidths(line: str, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_bandwidths(line, PERCENTS)
    assert refused.value.reason == reason


def test_bandwidths_go_up_to_the_next_step_and_only_a_change_is_written() -> None:
    steps = BandwidthHardware(BOTH, "amd", 100, 125)
    assert checked_bandwidths("MB:0=1500;1=300", steps) == {0: 1500, 1: 375}
    assert differs({0: 1500, 1: 375}, {0: 1500})
    machine = Hardware(None, PERCENTS)
    assert line_to_write("MB", {0: 55}, {"MB": {0: 60, 1: 10}}, machine) is None
    assert line_to_write("MB", {0: 55, 1: 20}, {"MB": {0: 60, 1: 10}}, machine) == "MB:0=60;1=20"
    assert line_to_write("L3", {0: 3}, {}, machine) is None, "a machine without the line"


@given(st.text())
def test_no_text_of_the_kernel_throws(text: str) -> None:
    for line in (text, f"L3:{text}", f"MB:0={text}", f"L3:{text}=f"):
        assert read_schemata(line) is not None
    found = read_hardware({"L3": {0: 1}, "MB": {0: 100}}, dict.fromkeys(INFO, text), text)
    assert found.cache is None or found.cache.mask > 0
    assert vendor_of(text) in ("intel", "amd")


@given(st.text())
def test_no_line_passes_the_check_that_is_none(text: str) -> None:
    for line in (text, f"L3:{text}", f"L3:0={text}"):
        try:
            masks = checked_masks(line, CACHE_16)
        except Refused:
            continue
        assert masks
        assert all(domain in BOTH and is_one_run(mask) for domain, mask in masks.items())


def test_what_is_no_number_is_passed_over() -> None:
    text = "L3:0=7ff;x=1;1=zz;2=fff\nL2:0=f\nMB:0=100;1=" + "9" * 5000
    assert read_schemata(text) == {"L3": {0: 0x7FF, 2: 0xFFF}, "MB": {0: 100}}


@pytest.mark.parametrize(
    ("name", "vendor"), [("AuthenticAMD", "amd"), ("HygonGenuine", "amd"), ("GenuineIntel", "intel"), ("", "intel")]
)
def test_the_unit_of_bandwidth_is_the_vendors(name: str, vendor: str) -> None:
    assert vendor_of(f"processor\t: 0\nvendor_id\t: {name}\nmodel\t: 1\n") == vendor


def test_the_hardware_is_what_info_says() -> None:
    whole = {"L3": {0: 0x7FF, 1: 0x7FF}, "MB": {0: 100, 1: 100}}
    found = read_hardware(whole, INFO, "")
    assert found.cache == CacheHardware(BOTH, 0x7FF, 2)
    assert found.bandwidth == PERCENTS
    assert found.most_groups == 8
    assert found.lacks == {}
    assert read_hardware(whole, INFO | {"MB/min_bandwidth": "0"}, "").bandwidth == BandwidthHardware(BOTH, least=1)
