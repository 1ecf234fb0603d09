"""What a pass plans for a pool: reserves, one flip at most, and what waits, by what the objects say alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from services.central.core.tide.change import LastChange, NodeChange
from services.central.core.tide.edits import closing
from services.central.core.tide.marks import BATCH_UNWANTED, SERVICES_UNWANTED, TideTaint, marks_of
from services.central.core.tide.placement import PodToleration, TidePlacement
from services.central.core.tide.plan import PoolPlan, PoolView, TidePace, of_pool, plan_pool
from services.central.core.tide.pool import TidePoolSeen, pool_of
from services.central.core.tide.roles import Role
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PACE = TidePace(hold_s=600.0, release_s=10.0, retry_s=3600.0)
SERVICE = TidePlacement(tolerations=(PodToleration(BATCH_UNWANTED.key, "Exists", "", ""),))
BATCH = TidePlacement(tolerations=(PodToleration(SERVICES_UNWANTED.key, "Exists", "", ""),))
AMOUNTS = {"cpu": 4000, "memory": 8 << 30, "pods": 110}


def pool(**spec: Any) -> TidePoolSeen:
    said = {"nodeConfigs": {"nodeSelector": {"pool": "green"}, "reserve": spec.pop("reserve", {})}, **spec}
    return pool_of({"metadata": {"name": "green", "uid": "p"}, "spec": said})


def node(name: str, role: Role | None, **fields: Any) -> TideNodeSeen:
    marks = marks_of(role, "green", {"pool": "green"}, (), pool().marks.taints)
    return TideNodeSeen(name, name, marks.labels, marks.taints, AMOUNTS, **fields)


def going(name: str, role: Role, to: Role) -> TideNodeSeen:
    """On its way, and closed."""
    shut = closing(node(name, role), NodeChange(pool="green", to=to, since=NOW), pool().marks)
    return replace(node(name, role), taints=shut.taints, change=shut.change)


def changed(name: str, role: Role, ago_s: float) -> TideNodeSeen:
    return node(name, role, last=LastChange(pool="green", at=NOW - timedelta(seconds=ago_s)))


def pod(name: str, on: str | None = None, cpu: int = 1000, **fields: Any) -> TidePodSeen:
    said = {"online": True, "placement": SERVICE, "unschedulable": on is None, **fields}
    return TidePodSeen(name, name, on, requests={"cpu": cpu, "pods": 1}, **said)


def plan(nodes: list[TideNodeSeen], pods: list[TidePodSeen], **spec: Any) -> PoolPlan:
    seen = pool(**spec)
    assert seen.pool is not None
    return plan_pool(PoolView(seen.marks, seen.pool, nodes, pods), NOW, PACE)


def moves(found: PoolPlan) -> list[tuple[str, Role]]:
    return [(move.node, move.role) for move in found.moves]


TWO = [node("a", "tide_online"), node("b", "tide_online")]


def test_the_least_used_goes_while_nobody_waits() -> None:
    assert moves(plan(TWO, [pod("x", "a")])) == [("b", "tide_offline")]


def test_nothing_goes_while_a_pod_waits_that_is_promised_a_node() -> None:
    coming = going("c", "tide_offline", "tide_online")
    found = plan([*TWO, coming], [pod("w")])
    assert (moves(found), found.waiting) == ([("c", "tide_online")], ["w"])


def test_no_further_node_comes_for_whom_one_on_its_way_is_enough() -> None:
    nodes = [going("a", "tide_offline", "tide_online"), node("b", "tide_offline")]
    assert moves(plan(nodes, [pod("w1", cpu=2000), pod("w2", cpu=2000)])) == [("a", "tide_online")]
    more = plan(nodes, [pod("w1", cpu=2000), pod("w2", cpu=2000), pod("w3", cpu=2000)])
    assert moves(more) == [("a", "tide_online"), ("b", "tide_online")]


def test_batch_pods_on_a_node_that_comes_are_as_good_as_gone() -> None:
    nodes = [going("a", "tide_offline", "tide_online"), node("b", "tide_offline")]
    batch = [pod(f"b{n}", "a", online=False, placement=BATCH) for n in range(4)]
    assert moves(plan(nodes, [*batch, pod("w")])) == [("a", "tide_online")]


def test_one_node_goes_after_the_other() -> None:
    away = going("a", "tide_online", "tide_offline")
    three = [away, node("b", "tide_online"), node("c", "tide_online")]
    assert moves(plan(three, [])) == [("a", "tide_offline")]
    assert moves(plan([changed("a", "tide_offline", 9), *three[1:]], [])) == []
    assert moves(plan([changed("a", "tide_offline", 10), *three[1:]], [])) == [("b", "tide_offline")]


def test_a_node_that_changed_just_now_is_not_at_rest() -> None:
    assert moves(plan([changed("z", "tide_offline", 0), *TWO], [])) == []


def test_a_node_on_its_way_to_batch_work_takes_nobody() -> None:
    nodes = [going("a", "tide_online", "tide_offline"), node("b", "tide_offline")]
    found = plan(nodes, [pod("w")])
    assert moves(found) == [("b", "tide_online"), ("a", "tide_offline")]
    assert found.moves[1].hindrance.startswith("pod w waits")


def test_a_node_with_a_pod_of_the_cluster_itself_stays_and_another_one_goes() -> None:
    system = pod("dns", "a", cpu=1, online=False, critical=True)
    assert moves(plan(TWO, [system, pod("x", "b")])) == [("b", "tide_offline")]


def test_a_node_that_is_new_or_on_its_way_is_not_chosen_again() -> None:
    new = replace(node("a", None), labels={"pool": "green"})
    found = plan([new, node("b", "tide_online")], [pod("x", "b")])
    assert ("a", "tide_online") in moves(found)
    away = plan([going("a", "tide_online", "tide_offline"), node("b", "tide_online"), node("c", "tide_online")], [])
    assert moves(away) == [("a", "tide_offline")]


def test_a_pod_that_could_run_nowhere_here_does_not_wait_for_this_pool() -> None:
    elsewhere = replace(SERVICE, selector=(("pool", "blue"),))
    found = plan(TWO, [pod("w", placement=elsewhere), pod("v", placement=TidePlacement())])
    assert (found.waiting, moves(found)) == ([], [("a", "tide_offline")])


def test_a_foreign_taint_keeps_pods_out() -> None:
    gpu = TideTaint("gpu", "NoSchedule")
    held = replace(node("a", "tide_offline"), taints=tuple(sorted([*node("a", "tide_offline").taints, gpu])))
    found = plan([held, node("b", "tide_offline")], [pod("w")])
    assert moves(found) == [("b", "tide_online")]


def test_by_the_hour_the_least_used_comes_and_none_goes_below_the_bound() -> None:
    schedule = {"bounds": [{"cronTab": "0 6 * * *", "minOnline": 2}]}
    assert moves(plan(TWO, [], schedule=schedule)) == []
    nodes = [node("a", "tide_online"), node("b", "tide_offline"), node("c", "tide_offline")]
    batch = pod("job", "b", online=False, placement=BATCH)
    assert moves(plan(nodes, [batch], schedule=schedule)) == [("c", "tide_online")]
    held = [nodes[0], changed("b", "tide_offline", 9), changed("c", "tide_offline", 9)]
    assert moves(plan(held, [batch], schedule=schedule)) == []


def test_a_reserve_grows_from_tide_nodes_of_its_side_and_nobody_is_emptied_for_it() -> None:
    found = plan(TWO, [pod("x", "a", cpu=3000), pod("y", "b", cpu=3000)], reserve={"online": 1})
    assert moves(found) == [("a", "online_reserve")]
    assert not found.moves[0].changes_side


def test_nodes_that_are_not_selected_any_more_leave_and_those_of_another_pool_are_left_alone() -> None:
    lost = replace(node("a", "tide_online"), labels={**node("a", "tide_online").labels, "pool": "other"})
    other = marks_of("tide_online", "blue", {"pool": "green"}, (), pool().marks.taints)
    foreign = TideNodeSeen("f", "f", other.labels, other.taints, AMOUNTS)
    found = plan([lost, foreign], [])
    assert (found.leaving, found.foreign, moves(found)) == (["a"], ["f"], [])


def test_a_change_of_a_pool_that_is_gone_is_none() -> None:
    node_of_blue = replace(node("a", None), change=NodeChange(pool="blue", to="tide_offline", since=NOW))
    assert of_pool(node_of_blue, "green").change is None
    assert of_pool(node_of_blue, "blue") is node_of_blue


def test_a_node_that_was_given_up_is_not_emptied_for_nothing_again() -> None:
    for ago_s, chosen in ((3599, "b"), (3600, "a")):
        last = LastChange(pool="green", at=NOW - timedelta(seconds=ago_s), gave_up=True)
        found = plan([node("a", "tide_online", last=last), node("b", "tide_online")], [pod("x", "b", cpu=1)])
        assert moves(found) == [(chosen, "tide_offline")]
