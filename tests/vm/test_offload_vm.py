"""Transparent offloading through `memory.reclaim`, on a kernel that has it."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(2400)]

MIB = 1 << 20
HELD_MIB, MOST_MIB = 64, 64


@pytest.fixture(scope="module")
def report(met: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return met("offload")


def test_idle_page_cache_is_given_back_by_and_by(report: dict[str, Any]) -> None:
    used = report["used"]
    assert used[0] > 256 * MIB
    assert used[-1] < used[0] - 128 * MIB


def test_no_step_is_larger_than_allowed_and_what_is_held_stays(report: dict[str, Any]) -> None:
    assert all(asked <= MOST_MIB * MIB for asked, *_ in report["steps"])
    assert report["used"][-1] > HELD_MIB * MIB
    assert report["alive"]


def test_the_first_look_only_looks(report: dict[str, Any]) -> None:
    asked, _, _, why = report["steps"][0]
    assert (asked, why) == (0, "a figure is missing")
