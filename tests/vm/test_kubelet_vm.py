"""qrm on kubelet's groups with cgroup v2 and 48 CPUs, both cgroup drivers: who may run where, read from the kernel."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.core.cpus.cpuset import CpuSet

pytestmark = [pytest.mark.vm, pytest.mark.timeout(2400)]

SIZES = {"idle": (4, 44), "pod": (6, 42), "peak": (8, 40)}
OWN_CPUS = 4


@pytest.fixture(scope="module")
def drivers(met: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return met("kubelet")


@pytest.fixture(params=["cgroupfs", "systemd"])
def steps(request: pytest.FixtureRequest, drivers: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = drivers[request.param]
    return found


@pytest.mark.parametrize("step", SIZES)
def test_every_process_runs_on_its_pools_cpus_and_a_dedicated_one_alone_on_its_own(
    steps: dict[str, Any], step: str
) -> None:
    seen = steps[step]
    assert seen["problems"] == []
    assert seen["allowed"] == seen["granted"]
    share, reclaim, own = (CpuSet.parse(seen["granted"][name]) for name in ("shared", "reclaimed", "dedicated"))
    assert len(own) == OWN_CPUS
    assert (len(share), len(reclaim)) == (SIZES[step][0], SIZES[step][1] - OWN_CPUS)
    assert not share & reclaim
    assert not own & (share | reclaim)


def test_a_dedicated_pod_keeps_its_cpus(steps: dict[str, Any]) -> None:
    assert len({seen["granted"]["dedicated"] for seen in steps.values()}) == 1


@pytest.mark.parametrize("step", SIZES)
def test_the_groups_above_the_pods_are_left_as_kubelet_made_them(steps: dict[str, Any], step: str) -> None:
    assert steps[step]["homes"] == ["", "", ""]


def test_reclaimed_pods_are_behind_all_others_and_have_a_limit_together(steps: dict[str, Any]) -> None:
    seen = steps["peak"]
    assert seen["idle"] == {"shared": "0", "reclaimed": "1", "dedicated": "0"}
    assert int(seen["limit"]) <= 1 << 30


MIB = 1 << 20


@pytest.mark.parametrize("step", SIZES)
def test_a_tenants_memory_is_protected_up_to_the_root_and_its_container_may_burst(
    steps: dict[str, Any], step: str
) -> None:
    seen = steps[step]["isolation"]
    assert seen["memory.min"] == [str(32 * MIB)] * 4
    assert seen["memory.low"] == [str(64 * MIB)] * 4
    assert seen["memory.high"][:2] == [str(112 * MIB), "max"]
    assert seen["cpu.max.burst"] == ["100000", "100000", "0", "0"]


def test_what_this_kernel_lacks_is_named(steps: dict[str, Any]) -> None:
    assert steps["peak"]["lacking"] == ["cpu.bvt_warp_ns"]


def test_everything_is_given_back(steps: dict[str, Any]) -> None:
    seen = steps["peak"]["given_back"]
    assert {text for name in ("memory.min", "memory.low", "cpu.max.burst") for text in seen[name]} == {"0"}
    assert set(seen["memory.high"][:2]) == {"max"}
