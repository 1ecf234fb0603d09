"""qrm's plans on a real kernel with cgroup v2 and 48 CPUs: no write is refused, and every prefix is a safe state.

The trees and wishes are drawn here, the writes are made in the guest, the states it saw are judged here. `VM_PLANS` is
how many plans are tried (300).
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cpuset_model import CLASSES, TOP, CpusetModel, as_tree, check_safe, cpu_sets, parent, trees, wishes
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rig.play import MACHINE, Told

from services.qrm.core.writes.plan import WantedSets, plan_writes
from shared.core.cgroups.knobs import Write
from shared.core.cpus.cpuset import CpuSet

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1500)]

LIMIT_S = 1200.0
PLANS, RANDOM_LISTS, RANDOM_WRITES = int(os.environ.get("VM_PLANS", "300")), 60, 12
ALL = CpuSet.of(range(MACHINE.cpus))
RECLAIMED = f"{TOP}/reclaimed_cores"
_DRAW = settings(
    phases=[Phase.generate], derandomize=True, database=None, suppress_health_check=list(HealthCheck), deadline=None
)
Case = dict[str, Any]
Grants = dict[str, tuple[CpuSet, CpuSet]]
"""By group: its own set, and what the kernel grants."""


def drawn_plans() -> list[Case]:
    cases: list[Case] = []

    @settings(_DRAW, max_examples=PLANS)
    @given(groups=trees(MACHINE.cpus), wanted=wishes(MACHINE.cpus))
    def collect(groups: Mapping[str, CpuSet], wanted: Mapping[str, WantedSets]) -> None:
        cases.append(as_case(groups, plan_writes(as_tree(groups), wanted)))

    collect()
    return cases


def drawn_lists() -> list[Case]:
    """Writes that no plan would hold: children wider than their parents, or beside them."""
    cases: list[Case] = []

    @settings(_DRAW, max_examples=RANDOM_LISTS)
    @given(groups=trees(MACHINE.cpus), data=st.data())
    def collect(groups: Mapping[str, CpuSet], data: st.DataObject) -> None:
        write = st.tuples(st.sampled_from(sorted(groups)), cpu_sets(ALL))
        some = data.draw(st.lists(write, min_size=1, max_size=RANDOM_WRITES))
        cases.append({"groups": as_text(groups), "writes": [[name, str(cpus)] for name, cpus in some]})

    collect()
    return cases


def as_text(groups: Mapping[str, CpuSet]) -> dict[str, str]:
    return {name: str(cpus) for name, cpus in groups.items()}


def as_case(groups: Mapping[str, CpuSet], writes: list[Write]) -> Case:
    return {"groups": as_text(groups), "writes": [[write.group, str(write.value)] for write in writes]}


def grants(state: Mapping[str, list[str]]) -> Grants:
    return {name: (CpuSet.parse(own), CpuSet.parse(granted)) for name, (own, granted) in state.items()}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [*drawn_plans(), *drawn_lists()]


@pytest.fixture(scope="module")
def replayed(tell: Callable[..., Told], cases: list[Case]) -> list[Case]:
    """What the guest saw of each case."""
    told = tell("plans", LIMIT_S, cases)
    assert "cases" in told.report, told.why()
    found: list[Case] = told.report["cases"]
    assert len(found) == len(cases)
    return found


def test_the_kernel_takes_every_write_of_every_plan_and_every_prefix_is_as_the_model_says(
    cases: list[Case], replayed: list[Case]
) -> None:
    prefixes = 0
    for case, found in list(zip(cases, replayed, strict=True))[:PLANS]:
        assert found["refused"] == []
        model = CpusetModel({name: CpuSet.parse(text) for name, text in case["groups"].items()}, ALL)
        for position, state in enumerate(found["states"]):
            if position:
                name, cpus = case["writes"][position - 1]
                model.write(name, CpuSet.parse(cpus))
            kernel = grants(state)
            assert {name: own for name, (own, _) in kernel.items()} == model.groups
            assert {name: granted for name, (_, granted) in kernel.items()} == model.groups
            check_safe(model.groups)
            prefixes += 1
    assert prefixes > PLANS  # most plans have writes


def test_no_cpu_is_granted_to_two_pools_that_was_not_before_and_shall_not_be(replayed: list[Case]) -> None:
    judged = 0
    for found in replayed[:PLANS]:
        states = [grants(state) for state in found["states"]]
        if not states[0][RECLAIMED][1] & states[-1][RECLAIMED][1]:
            continue  # a move through the union cannot keep apart what trades places
        judged += 1
        for other in CLASSES.keys() - {RECLAIMED}:
            both = [state[RECLAIMED][1] & state[other][1] for state in states]
            assert all(during <= both[0] | both[-1] for during in both)
    assert judged


def test_any_other_write_is_taken_too_and_granted_as_far_as_the_group_above_reaches(replayed: list[Case]) -> None:
    """The rule by which qrm and the simulator read an own set: what lies in the parent's grant, else all of that."""
    for found in replayed[PLANS:]:
        assert found["refused"] == []
        for state in map(grants, found["states"]):
            for name, (own, granted) in state.items():
                above = state[parent(name)][1] if parent(name) else ALL
                assert granted == ((own & above) or above)
