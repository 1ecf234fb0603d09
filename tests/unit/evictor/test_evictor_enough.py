"""Enough but not more: the fewest that bring what is observed to its line, within the burst of one round."""

import math
from dataclasses import replace
from typing import Any

import pytest
from evictor_world import GIB, LARGE, RECLAIMED, SMALL, WEB, MakeNode, overcommitted, pod
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st
from plugin_world import PLUGINS, bound, busy, pressed, settings_of
from present import present

from services.evictor.core.arbiter.budgets import Account, Budget
from services.evictor.core.arbiter.choice import ConfirmedPressure, RoundLimits, choose
from services.evictor.core.arbiter.guards import Surroundings
from services.evictor.core.arbiter.sufficient import excess, select
from services.evictor.core.plugin import Candidate, Pressure
from shared.contracts.envelope import Reason
from shared.contracts.pod import QosClass
from shared.core.evictions.intents import Record

OVER = Pressure(hard=True, scope="x", observed=30, threshold=20)
SHORT = Pressure(hard=True, scope="memory", observed=20, threshold=30, below=True)
ENOUGH = RoundLimits("enough", 100)


def candidates(*reliefs: float | None, qos: str = "reclaimed_cores", **fields: Any) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(pod(f"{qos[0]}{i}", qos, **fields), Reason(rule="test"), relief) for i, relief in enumerate(reliefs)
    )


@pytest.mark.parametrize(
    ("reliefs", "wanted", "taken"),
    [
        pytest.param([24, 12], 10, [24], id="the first is enough"),
        pytest.param([6, 5, 4], 10, [6, 5], id="two are needed"),
        pytest.param([3, 12, 5], 10, [12], id="what the larger one makes needless stays"),
        pytest.param([4, 3, 8], 10, [4, 8], id="of those that could stay the last stays"),
        pytest.param([4, 3], 10, [4, 3], id="all of them where all are too little"),
        pytest.param([24, 12], None, [24], id="one where nobody can say how much"),
        pytest.param([None, 12], 10, [None], id="one of unknown relief goes alone"),
        pytest.param([4, None, 12], 10, [4], id="nobody is passed over for want of a figure"),
        pytest.param([0, 12], 10, [0], id="no relief is as good as unknown"),
        pytest.param([], 10, [], id="nobody"),
    ],
)
def test_enough_and_nobody_without_need(reliefs: list[int | None], wanted: int | None, taken: list[int | None]) -> None:
    found, refusals = select(candidates(*reliefs), Account(), wanted)
    assert [c.relief for c in found] == taken
    assert refusals == ()


def test_one_goes_unless_enough_are_asked_for() -> None:
    over = {"p": ConfirmedPressure(OVER, lambda: candidates(6, 5, 4))}
    chosen = [choose(over, Surroundings(), limits=limits) for limits in (RoundLimits("one", 100), ENOUGH)]
    assert [len(choice.victims) for (choice,) in chosen] == [1, 2]


def test_a_pod_without_budget_is_passed_over_and_the_next_one_helps() -> None:
    one = Account((Budget("namespace", 1, 60),))
    crowd = (*candidates(6, 5), *candidates(4, qos="shared_cores", namespace="other"))
    found, refusals = select(crowd, one, 10.0)
    assert [c.relief for c in found] == [6, 4]
    assert [(r.pod, r.why) for r in refusals] == [("default/r1", "namespace_budget")]


def test_a_pod_that_is_ranked_twice_goes_once() -> None:
    once = candidates(6)
    assert select((*once, *once), Account(), 10.0) == (once, ())


def test_who_is_not_needed_is_not_refused() -> None:
    one = Account((Budget("node", 1, 60),))
    found, refusals = select(candidates(12, 5), one, 10.0)
    assert ([c.relief for c in found], refusals) == ([12], ())


@pytest.mark.parametrize(
    ("pressure", "too_much"),
    [
        (OVER, 10),
        (SHORT, 10),
        pytest.param(replace(SHORT, observed=40), None, id="enough is free, kswapd is busy"),
        pytest.param(replace(OVER, observed=20), None, id="on the line"),
    ],
)
def test_the_gap_goes_the_way_of_the_pressure(pressure: Pressure, too_much: int | None) -> None:
    assert excess(pressure) == too_much


@given(
    reclaimed=st.lists(st.integers(1, 40), max_size=8),
    tenants=st.lists(st.integers(1, 40), max_size=4),
    wanted=st.integers(1, 120),
)
def test_the_chosen_suffice_none_can_be_dropped_nobody_is_there_twice_and_tenants_wait(
    reclaimed: list[int], tenants: list[int], wanted: int
) -> None:
    crowd = (*candidates(*tenants, qos="shared_cores"), *candidates(*reclaimed))
    pressure = replace(OVER, observed=20.0 + wanted)
    (choice,) = choose({"p": ConfirmedPressure(pressure, lambda: crowd)}, Surroundings(), limits=ENOUGH)
    reliefs = [c.relief or 0 for c in choice.victims]
    able = reclaimed or tenants
    assert sum(reliefs) >= min(wanted, sum(able)), "it does not suffice"
    if sum(able) >= wanted:
        assert all(sum(reliefs) - relief < wanted for relief in reliefs), "one could be dropped"
    assert len({c.pod.uid for c in choice.victims}) == len(choice.victims)
    assert {c.pod.qos for c in choice.victims} <= {"reclaimed_cores" if reclaimed else "shared_cores"}


@given(reliefs=st.lists(st.integers(1, 40), min_size=1, max_size=8), wanted=st.integers(1, 120))
def test_of_a_ranking_by_size_no_smaller_set_would_do(reliefs: list[int], wanted: int) -> None:
    found, _ = select(candidates(*sorted(reliefs, reverse=True)), Account(), wanted)
    if sum(reliefs) >= wanted:
        assert sum(sorted(reliefs, reverse=True)[: len(found) - 1]) < wanted


def test_one_round_never_takes_more_than_the_burst_over_all_plugins_in_their_order() -> None:
    first, second = candidates(1, 1, 1), candidates(1, 1, qos="dedicated_cores")
    ready = {"b": ConfirmedPressure(OVER, lambda: second), "a": ConfirmedPressure(OVER, lambda: first)}
    chosen = choose(ready, Surroundings(), limits=RoundLimits("enough", 4))
    assert [(c.plugin, [v.pod.name for v in c.victims]) for c in chosen] == [("a", ["r0", "r1", "r2"]), ("b", ["d0"])]
    assert [(r.pod, r.why) for r in chosen[1].refusals] == [("default/d1", "burst")]
    assert "4 of 4" in chosen[1].refusals[0].says


def test_budgets_are_shared_by_the_plugins_of_one_round() -> None:
    ready = {name: ConfirmedPressure(OVER, lambda: candidates(9, 8)) for name in ("a", "b")}
    chosen = choose(ready, Surroundings(), Account((Budget("node", 1, 60),)))
    assert [len(c.victims) for c in chosen] == [1, 0]
    assert [r.why for r in chosen[1].refusals] == ["live_intent", "node_budget"]


def test_soft_pressure_takes_one_however_much_is_asked_for() -> None:
    soft = {name: ConfirmedPressure(replace(OVER, hard=False), lambda: candidates(1, 1)) for name in ("a", "b")}
    assert sum(len(c.victims) for c in choose(soft, Surroundings(), limits=ENOUGH)) == 1


ADDITIVE = ("reclaimed_overcommit", "reclaimed_numa_overcommit", "cpu_load", "numa_cpu_pressure", "memory_pressure",
            "system_memory_pressure", "numa_memory_pressure", "rootfs_pressure", "memory_usage")  # fmt: skip
BY_POD = ("rss_overuse", "rootfs_overuse", "cpu_suppression", "cpu_satisfaction", "reclaimed_allocatable")


@pytest.mark.parametrize("section", [*ADDITIVE, *BY_POD])
def test_plugins_that_know_say_how_much_each_pod_would_bring(section: str) -> None:
    qos: QosClass = "shared_cores" if section in ("cpu_load", "numa_cpu_pressure") else "reclaimed_cores"
    pressure, one = pressed(section, [busy(bound(f"p{i}", qos, cpu=9000, memory=9), i) for i in range(3)])
    ranking = PLUGINS[section].rank(one, pressure, settings_of(section))
    assert ranking
    assert all(c.relief is not None and math.isfinite(c.relief) and c.relief > 0 for c in ranking)
    assert section in BY_POD or excess(present(pressure)) is not None


def test_the_share_of_a_numa_node_counts_where_the_node_is_short_and_only_where_it_is_told() -> None:
    told, untold = busy(bound("told"), 1), busy(bound("untold"), 3)
    silent = untold.containers[0].model_copy(update={"memory_numa": None})
    pressure, one = pressed("numa_memory_pressure", [told, untold.model_copy(update={"containers": (silent,)})])
    ranking = PLUGINS["numa_memory_pressure"].rank(one, pressure, settings_of("numa_memory_pressure"))
    assert {c.pod.name: c.relief for c in ranking} == {"told": 2 * GIB, "untold": None}


def test_the_evictor_takes_enough_in_one_round_where_that_is_set(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(victims_per_round="enough"))
        world.run(pod("third", cpu=11_000), WEB)
        world.offered_millis = 2_000  # 47k asked for, 10k allowed
        async with world.life():
            await world.tick(3)
            state = world.state()
        assert world.evictor.kills == [LARGE.uid, SMALL.uid, pod("third").uid]
        assert state["plugins"][RECLAIMED]["evictions_without_relief"] == 0

    virtual(main())


def test_those_of_one_round_count_as_one_try() -> None:
    once = Record().after_eviction(10.0, opened_at_s=5.0)
    assert once == Record(1, 10.0)
    assert once.after_eviction(12.0, opened_at_s=5.0) == Record(1, 12.0), "opened before the last one had ended"
    assert once.after_eviction(40.0, opened_at_s=30.0) == Record(2, 40.0)
