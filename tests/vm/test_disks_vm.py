"""Write-back throttling and io.cost on a kernel with cgroup v2."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.vm, pytest.mark.timeout(2400)]

QOS = "enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=90.50 wlat=7000 min=50.00 max=150.00"
MODEL = "rbps=3000000 rseqiops=2000 rrandiops=1000 wbps=2000000 wseqiops=1500 wrandiops=500"


@pytest.fixture(scope="module")
def report(met: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return met("disks")


def test_the_kernel_has_what_was_written_and_so_it_has_after_somebody_elses_write(report: dict[str, Any]) -> None:
    for step in ("set", "repaired"):
        seen = report[step]
        assert (seen["wbt"], seen["problems"], seen["lacking"], seen["unheeded"]) == (0, [], [], [])
        assert QOS in seen["qos"]
        assert MODEL in seen["model"]


def test_another_life_gives_back_what_was_there(report: dict[str, Any]) -> None:
    before = report["before"]
    for step in ("given_back", "given_back_again"):
        seen = report[step]
        assert (seen["wbt"], seen["problems"]) == (before["wbt"], [])
        assert "enable=1" not in seen["qos"]
        assert "ctrl=user" not in seen["qos"] + seen["model"]


def test_a_disk_that_is_throttled_has_no_io_cost(report: dict[str, Any]) -> None:
    seen = report["throttled"]
    assert seen["wbt"] == 3000
    assert "enable=1" not in seen["qos"]
    assert "write-back throttling is on there" in seen["unheeded"][0]


def test_figures_behind_auto_are_somebodys_for_the_kernel(report: dict[str, Any]) -> None:
    assert "ctrl=user rpct=50.00" in report["auto_with_figures"]["qos"]
    assert "ctrl=auto" in report["auto_with_figures"]["model"]
