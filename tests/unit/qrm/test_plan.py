"""The order of cgroup writes: every prefix of every plan is a safe state."""

from random import Random

import pytest
from cpuset_model import CLASSES, MEMS, TOP, CpusetModel, as_tree, check_safe, parent, trees, wishes
from hypothesis import given, settings
from hypothesis import strategies as st

from services.qrm.core.writes.plan import Sets, WantedSets, goal_sets, plan_writes
from shared.core.cgroups.knobs import Knob, Write
from shared.core.cpus.cpuset import CpuSet

CPUS = 4
RECLAIMED, SHARED = f"{TOP}/reclaimed_cores", f"{TOP}/shared_cores"


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text)


def want(text: str, rank: int | None = None, mems: str = "0") -> WantedSets:
    return WantedSets(Sets(cpus(text), cpus(mems)), rank)


def tree(**classes: str) -> dict[str, Sets]:
    """A top group with all CPUs and one group for each keyword."""
    groups = {TOP: cpus("0-3")} | {f"{TOP}/{name}": cpus(text) for name, text in classes.items()}
    return as_tree(groups)


def written(plan: list[Write]) -> list[str]:
    return [f"{write.group.removeprefix(TOP + '/')} {write.value}" for write in plan]


def states(groups: dict[str, CpuSet], plan: list[Write]) -> list[dict[str, CpuSet]]:
    """The states that the kernel model goes through; raises where the kernel would refuse a write."""
    model = CpusetModel(groups, cpus("0-3"))
    passed = [dict(model.groups)]
    for write in plan:
        model.run(write)
        passed.append(dict(model.groups))
    return passed


def test_reclaimed_shrinks_before_the_tenants_grow() -> None:
    now = tree(reclaimed_cores="0-2", shared_cores="3")
    plan = plan_writes(now, {TOP: want("0-3"), RECLAIMED: want("0", 0), SHARED: want("1-3", 1)})
    assert written(plan) == ["reclaimed_cores 0", "shared_cores 1-3"]


def test_tenants_shrink_before_reclaimed_grows() -> None:
    now = tree(reclaimed_cores="0", shared_cores="1-3")
    plan = plan_writes(now, {TOP: want("0-3"), RECLAIMED: want("0-2", 0), SHARED: want("3", 1)})
    assert written(plan) == ["shared_cores 3", "reclaimed_cores 0-2"]


def test_children_narrow_before_and_widen_after_their_parent() -> None:
    pod, container = f"{RECLAIMED}/pod1", f"{RECLAIMED}/pod1/c"
    now = tree(reclaimed_cores="0-3") | as_tree({pod: cpus("0-3"), container: cpus("0-3")})
    smaller = plan_writes(now, {TOP: want("0-3"), RECLAIMED: want("0", 0)})
    assert [write.group for write in smaller] == [container, pod, RECLAIMED]
    then = tree(reclaimed_cores="0") | as_tree({pod: cpus("0"), container: cpus("0")})
    larger = plan_writes(then, {TOP: want("0-3"), RECLAIMED: want("0-3", 0)})
    assert [write.group for write in larger] == [RECLAIMED, pod, container]


def test_a_move_to_other_cpus_goes_through_the_union() -> None:
    now = tree(shared_cores="0-1")
    plan = plan_writes(now, {TOP: want("0-3"), SHARED: want("2-3", 1)})
    assert written(plan) == ["shared_cores 0-3", "shared_cores 2-3"]


def test_memory_nodes_are_written_before_cpus() -> None:
    now = {TOP: Sets(cpus("0-3"), cpus("0-1")), SHARED: Sets(CpuSet(), CpuSet())}
    plan = plan_writes(now, {TOP: want("0-3", mems="0-1"), SHARED: want("0-3", 1, mems="1")})
    assert [(write.knob, write.value) for write in plan] == [(Knob.MEMS, "1"), (Knob.CPUS, "0-3")]


def test_nothing_is_written_where_everything_is_as_wanted() -> None:
    now = tree(reclaimed_cores="0", shared_cores="1-3")
    assert plan_writes(now, {TOP: want("0-3"), RECLAIMED: want("0", 0), SHARED: want("1-3", 1)}) == []


def test_groups_that_nobody_wants_anything_of_are_left_alone() -> None:
    now = tree(shared_cores="0-1") | {"other/group": Sets(cpus("0"), MEMS)}
    plan = plan_writes(now, {SHARED: want("0-3", 1)})
    assert written(plan) == ["shared_cores 0-3"]


def test_a_pinned_group_keeps_its_set_and_those_above_make_room() -> None:
    pod = f"{RECLAIMED}/pod1"
    now = tree(reclaimed_cores="0-2") | as_tree({pod: cpus("2"), f"{RECLAIMED}/pod2": cpus("0-2")})
    wanted = {TOP: want("0-3"), RECLAIMED: want("0", 0)}
    plan = plan_writes(now, wanted, {pod})
    assert written(plan) == ["reclaimed_cores/pod2 0", "reclaimed_cores 0,2"]
    assert goal_sets(now, wanted, {pod})[pod].cpus == cpus("2")


def test_a_group_of_its_own_below_a_class_gets_its_own_set() -> None:
    """The seam for named pools and bound blocks: a wanted set at any level, within its parent's."""
    pod = f"{SHARED}/pod1"
    now = tree(shared_cores="0-3") | as_tree({pod: cpus("0-3"), f"{pod}/c": cpus("0-3")})
    plan = plan_writes(now, {TOP: want("0-3"), SHARED: want("0-3", 1), pod: want("1")})
    assert written(plan) == ["shared_cores/pod1/c 1", "shared_cores/pod1 1"]


def test_a_group_inside_of_a_class_yields_with_it_whatever_rank_it_has_itself() -> None:
    pod = f"{RECLAIMED}/pod1"
    now = tree(reclaimed_cores="0-2", shared_cores="3") | as_tree({pod: cpus("0-2")})
    wanted = {TOP: want("0-3"), RECLAIMED: want("0", 0), SHARED: want("1-3", 1), pod: want("0", 1)}
    plan = plan_writes(now, wanted)
    assert written(plan) == ["reclaimed_cores/pod1 0", "reclaimed_cores 0", "shared_cores 1-3"]


def test_a_pinned_group_that_was_never_configured_takes_no_room() -> None:
    pod = f"{RECLAIMED}/pod1"
    now = tree(reclaimed_cores="0-2") | {pod: Sets(CpuSet(), CpuSet())}
    wanted = {TOP: want("0-3"), RECLAIMED: want("0", 0)}
    assert goal_sets(now, wanted, {pod})[RECLAIMED].cpus == cpus("0")


OWN = f"{SHARED}/own"


@pytest.mark.parametrize(
    ("here", "there", "promised", "waits_on"),
    [
        pytest.param("0-1", "5-6", "2-3", "0-1", id="on what it has, which nobody is promised"),
        pytest.param("1-2", "4-5", "2-3", "1", id="on the rest of what it has"),
        pytest.param("2", "4-5", "2-3", "5", id="on the part of its new CPUs that was nobody's own"),
        pytest.param("2", "4", "2-3", "0-1,5-7", id="anywhere else"),
    ],
)
def test_reclaimed_work_that_changes_all_its_cpus_waits_where_nobody_has_cpus_for_himself(
    here: str, there: str, promised: str, waits_on: str
) -> None:
    """A pod leaves 3-4, which were its own, for others that shall be."""
    now = as_tree({TOP: cpus("0-7"), RECLAIMED: cpus(here), SHARED: cpus("0-7"), OWN: cpus("3-4")})
    own = WantedSets(Sets(cpus(promised), MEMS), 1, own=True)
    wanted = {TOP: want("0-7"), RECLAIMED: want(there, 0), SHARED: want("0-7", 1), OWN: own}
    sets = [cpus(str(write.value)) for write in plan_writes(now, wanted) if write.group == RECLAIMED]
    assert next(one for one in (cpus(here), *sets) if not one & cpus(promised)) == cpus(waits_on)
    assert sets[-1] == cpus(there)


def test_a_wished_set_outside_its_parent_s_becomes_the_parent_s() -> None:
    pod = f"{SHARED}/pod1"
    now = tree(shared_cores="0-3") | as_tree({pod: cpus("0")})
    plan = plan_writes(now, {TOP: want("0-3"), SHARED: want("2-3", 1), pod: want("0")})
    assert written(plan) == ["shared_cores/pod1 0,2-3", "shared_cores/pod1 2-3", "shared_cores 2-3"]


def test_an_empty_wish_is_not_written() -> None:
    assert plan_writes(tree(shared_cores="0"), {TOP: want("")}) == []
    assert plan_writes(tree(shared_cores="0"), {SHARED: want("", 1), f"{TOP}/other": want("0", 0)}) == []


@settings(max_examples=200)
@given(trees(CPUS), wishes(CPUS))
def test_every_prefix_of_every_plan_is_safe_and_accepted_by_the_kernel(
    groups: dict[str, CpuSet], wanted: dict[str, WantedSets]
) -> None:
    passed = states(groups, plan_writes(as_tree(groups), wanted))
    for state in passed:
        check_safe(state)
    assert passed[-1] == {group: sets.cpus for group, sets in goal_sets(as_tree(groups), wanted).items()}
    for group, cpu_set in passed[-1].items():
        model = next(name for name in (group, parent(group), parent(parent(group))) if name in wanted)
        assert cpu_set == wanted[model].sets.cpus


@settings(max_examples=200)
@given(trees(CPUS), wishes(CPUS), st.data())
def test_a_plan_cut_anywhere_is_completed_by_the_next_one(
    groups: dict[str, CpuSet], wanted: dict[str, WantedSets], data: st.DataObject
) -> None:
    plan = plan_writes(as_tree(groups), wanted)
    half = states(groups, plan[: data.draw(st.integers(0, len(plan)))])[-1]
    rest = plan_writes(as_tree(half), wanted)
    assert states(half, rest)[-1] == states(groups, plan)[-1]
    assert plan_writes(as_tree(states(half, rest)[-1]), wanted) == []


@settings(max_examples=200)
@given(trees(CPUS), wishes(CPUS))
def test_no_cpu_is_in_two_pools_that_was_not_before_and_shall_not_be(
    groups: dict[str, CpuSet], wanted: dict[str, WantedSets]
) -> None:
    goal = {group: wish.sets.cpus for group, wish in wanted.items()}
    allowed = (groups[RECLAIMED] & groups[SHARED]) | (goal[RECLAIMED] & goal[SHARED])
    if not groups[RECLAIMED] & goal[RECLAIMED]:
        return  # a move through the union cannot keep apart what trades places
    for state in states(groups, plan_writes(as_tree(groups), wanted)):
        assert state[RECLAIMED] & state[SHARED] <= allowed


@settings(max_examples=200)
@given(trees(CPUS), wishes(CPUS))
def test_a_tenant_never_has_less_than_all_of_its_old_or_all_of_its_new_set(
    groups: dict[str, CpuSet], wanted: dict[str, WantedSets]
) -> None:
    for state in states(groups, plan_writes(as_tree(groups), wanted)):
        for name, rank in CLASSES.items():
            if rank == 1:
                assert groups[name] <= state[name] or wanted[name].sets.cpus <= state[name]


@settings(max_examples=300)
@given(trees(CPUS), wishes(CPUS), st.data())
def test_pinned_groups_are_never_written_and_the_others_stay_safe(
    groups: dict[str, CpuSet], wanted: dict[str, WantedSets], data: st.DataObject
) -> None:
    pinned = data.draw(st.sets(st.sampled_from([group for group in groups if group != TOP]), max_size=2))
    plan = plan_writes(as_tree(groups), wanted, pinned)
    assert not {write.group for write in plan} & pinned
    for state in states(groups, plan):
        check_safe(state)


@given(trees(CPUS), wishes(CPUS), st.randoms())
def test_the_plan_does_not_depend_on_the_order_of_the_groups(
    groups: dict[str, CpuSet], wanted: dict[str, WantedSets], random: Random
) -> None:
    shuffled = list(groups.items())
    random.shuffle(shuffled)
    assert plan_writes(as_tree(dict(shuffled)), wanted) == plan_writes(as_tree(groups), wanted)


@pytest.mark.parametrize("empty", [RECLAIMED, SHARED])
def test_a_group_that_was_never_configured_is_given_its_set(empty: str) -> None:
    now = tree(reclaimed_cores="0-1", shared_cores="2-3") | {empty: Sets(CpuSet(), MEMS)}
    wanted = {TOP: want("0-3"), RECLAIMED: want("0-1", 0), SHARED: want("2-3", 1)}
    assert written(plan_writes(now, wanted)) == [f"{empty.removeprefix(TOP + '/')} {wanted[empty].sets.cpus}"]


def test_a_new_group_of_reclaimed_work_gets_its_cpus_after_the_tenants_have_left_them() -> None:
    now = tree(shared_cores="0-3") | {RECLAIMED: Sets(CpuSet(), MEMS)}
    plan = plan_writes(now, {TOP: want("0-3"), RECLAIMED: want("0-1", 0), SHARED: want("2-3", 1)})
    assert written(plan) == ["shared_cores 2-3", "reclaimed_cores 0-1"]
