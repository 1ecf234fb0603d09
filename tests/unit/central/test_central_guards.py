"""Guards on counts: every share, every transition into a pause and out of it."""

import math

import pytest

from services.central.core.lost_nodes.actions import NodeCase, plan_actions, plan_evictions
from services.central.core.lost_nodes.guards import (
    CLUSTER,
    NOWHERE,
    Census,
    CountedNode,
    Guards,
    NodePlace,
    Places,
    allowed_bad,
    weigh,
)
from services.central.core.lost_nodes.pacing import Pace
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Judged, NodeVerdict
from services.central.whatif.pacing import next_action
from shared.core.evictions.intents import TokenBucket

RULES = Rules()
LONG_S = 5000.0  # silent for so long that it was not sudden


def nodes(
    total: int, bad: int = 0, place: NodePlace = NOWHERE, silent_s: float = LONG_S, start: int = 0
) -> list[CountedNode]:
    return [
        CountedNode(f"n{start + i:05}", bad=i < bad, silent_s=silent_s if i < bad else 0.0, place=place)
        for i in range(total)
    ]


def look(found: list[CountedNode] | None, before: Guards | None = None, now_s: float = 0.0) -> Guards:
    return weigh(None if found is None else Census.of(found), before or Guards(), now_s, RULES)


def test_how_many_may_look_bad_for_every_size() -> None:
    for total in range(1, 2001):
        for bad in {0, 1, total - 1, total}:
            want = 0 if bad == total else max(1, total // 5)
            assert allowed_bad(total, bad, 0.2) == want, (total, bad)


def test_a_share_of_every_pool_and_zone_for_every_count() -> None:
    for total in range(1, 21):
        for bad in range(total + 1):
            place = NodePlace(pool="p", zone="z")
            other = nodes(100, 0, NodePlace(pool="q", zone="y"), start=total)
            guards = look([*nodes(total, bad, place), *other])
            paused = bad > 0 and (bad == total or bad > max(1, total // 5))
            assert set(guards.objections) == ({"pool/p", "zone/z"} if paused else set()), (total, bad)
            assert bool(guards.objection(place)) is paused
            assert not guards.objection(NodePlace(pool="q", zone="y"))
            assert not guards.paused


def test_of_the_nodes_heard_some_may_stand_nowhere() -> None:
    places = Places.of({"n1": NodePlace(pool="p", zone="z"), "n2": NodePlace(pool="p"), "n3": NOWHERE})
    assert places.totals(5) == {CLUSTER: 5, "pool/p": 2, "zone/z": 1}


def test_a_paused_cluster_pauses_every_place() -> None:
    guards = look(nodes(10, 3))
    assert guards.paused
    assert guards.actions_per_s == 0.0
    assert guards.objection(NodePlace(pool="p")).startswith("cluster: 3 of 10 nodes look bad, at most 2 may")


def test_an_unknown_number_of_nodes_pauses() -> None:
    guards = look(None, look(nodes(10)))
    assert guards.paused == ("it is not known how many nodes there are",)
    assert guards.actions_per_s == 0.0
    assert look(nodes(10), guards, 299.0).paused
    assert not look(nodes(10), guards, 301.0).paused


@pytest.mark.parametrize(
    ("total", "together", "paused"), [(50, 3, False), (50, 4, True), (100, 5, False), (100, 6, True), (1000, 50, False)]
)
def test_nodes_that_fell_silent_together(total: int, together: int, paused: bool) -> None:
    guards = look(nodes(total, together, silent_s=31.0))
    assert bool(guards.paused) is paused
    assert not look(nodes(total, together, silent_s=91.0)).paused
    if paused:
        later = look(nodes(total, together, silent_s=900.0), guards, 899.0)
        assert later.paused == ("a pause holds for another 1 s",)
        assert not look(nodes(total, together, silent_s=901.0), guards, 901.0).paused


@pytest.mark.parametrize(
    ("silent_s", "sudden"), [(0.0, False), (30.0, False), (30.1, True), (90.0, True), (90.1, False), (None, False)]
)
@pytest.mark.parametrize("bad", [True, False])
def test_a_node_is_bad_by_its_word_and_suddenly_silent_by_certain_seconds(
    silent_s: float | None, sudden: bool, bad: bool
) -> None:
    census = Census.of([*nodes(90), *(CountedNode(f"s{i}", bad, silent_s) for i in range(10))])
    guards = weigh(census, Guards(), 0.0, RULES)
    assert bool(guards.paused) is sudden
    assert guards.state == look(nodes(100, 10 * bad)).state
    many = Census.of([*nodes(70), *(CountedNode(f"s{i}", bad, silent_s) for i in range(30))])
    assert bool(weigh(many, Guards(), 0.0, RULES).paused) is (sudden or bad)


def test_of_several_reasons_for_a_pause_the_longest_counts() -> None:
    both = look(nodes(50, 20, silent_s=31.0))
    assert len(both.paused) == 2
    again = look(nodes(50, 20), both, 100.0)
    assert both.held_until_s == again.held_until_s == {CLUSTER: 900.0}
    assert look(nodes(50, 20), both, 700.0).held_until_s == {CLUSTER: 1000.0}


@pytest.mark.parametrize(("left", "paused"), [(100, False), (90, False), (89, True), (0, True)])
def test_many_nodes_gone_at_once(left: int, paused: bool) -> None:
    assert bool(look(nodes(left), look(nodes(100)), 1.0).paused) is paused


def test_nodes_gone_one_after_another_are_noticed_and_believed_in_the_end() -> None:
    guards = look(nodes(100))
    for gone in range(1, 12):
        guards = look(nodes(100 - gone), guards, 60.0 * gone)
    assert guards.paused == ("89 nodes are left of 100: too many went at once",)
    guards = look(nodes(89), guards, 901.0)
    assert guards.most_nodes == 89
    assert guards.paused == ("a pause holds for another 59 s",)
    assert not look(nodes(89), guards, 961.0).paused


@pytest.mark.parametrize(
    ("counts", "paused"),
    [
        pytest.param([(0.0, 100), (800.0, 100), (950.0, 85)], True, id="as many as ever, lately"),
        pytest.param([(0.0, 100), (1.0, 200), (2.0, 150)], True, id="more had come"),
        pytest.param([(0.0, 100), (1.0, 95), (900.0, 85)], True, id="long ago, but not yet the past"),
        pytest.param([(0.0, 100), (1.0, 95), (901.0, 85)], False, id="the past"),
    ],
)
def test_the_most_nodes_lately_are_what_is_left_of(counts: list[tuple[float, int]], paused: bool) -> None:
    guards = Guards()
    for at_s, total in counts:
        guards = look(nodes(total), guards, at_s)
    assert bool(guards.paused) is paused


def test_a_pause_ends_only_after_a_clean_time_and_then_the_pace_is_back() -> None:
    calm, stormy = nodes(10), nodes(10, 3)
    guards = look(stormy)
    for now_s in range(10, 300, 10):
        guards = look(calm, guards, now_s)
        assert guards.paused
        assert (guards.state, guards.actions_per_s) == ("Normal", 0.0)
    relapsed = look(stormy, guards, 295.0)
    assert look(calm, relapsed, 301.0).paused
    assert look(calm, relapsed, 594.0).paused
    free = look(calm, relapsed, 595.0)
    assert (free.paused, free.actions_per_s, free.held_until_s) == ((), 0.1, {})


def test_a_pool_holds_its_pause_by_itself() -> None:
    place, other = NodePlace(pool="p"), nodes(50, 0, NodePlace(pool="q"), start=10)
    guards = look([*nodes(5, 2, place), *other])
    later = look([*nodes(5, 0, place), *other], guards, 100.0)
    assert later.objection(place) == "pool/p: a pause holds for another 200 s"
    assert (later.paused, later.actions_per_s) == ((), 0.1)


def test_the_state_has_the_tutorials_names() -> None:
    assert look(nodes(10)).state == "Normal"
    assert look(nodes(10, 4)).state == "PartialDisruption"
    assert look(nodes(10, 10)).state == "FullDisruption"


def case(
    node: str, lost_s: int, tainted: bool = False, verdict: NodeVerdict = "lost", place: NodePlace = NOWHERE
) -> NodeCase:
    return NodeCase(node, Judged(verdict, "", lost_s), tainted, has_reclaimed_pods=True, place=place)


def test_one_token_each_taints_first_then_the_longest_lost() -> None:
    cases = [case("a", 2000, True), case("b", 700), case("c", 900), case("d", 9000, True), case("e", 0, True, "ready")]
    cases += [
        case("f", 2000, place=NodePlace(pool="p")),
        case("g", 0, False, "ready"),
        case("h", 2000, verdict="freeze"),
    ]
    guards = Guards({"pool/p": ("too many",)}, actions_per_s=0.1)
    planned, left = plan_actions(cases, guards, TokenBucket(1, 0.0), 0.0, RULES)
    assert [(one.node, one.action, one.objection) for one in planned] == [
        ("e", "untaint", ""),
        ("f", "taint", "pool/p: too many"),
        ("c", "taint", ""),
        ("b", "taint", "waits for its turn"),
        ("d", "evict", "waits for its turn"),
        ("a", "evict", "waits for its turn"),
    ]
    assert left == TokenBucket(0, 0.0)
    assert next_action(Pace(0.1), left) == (10.0, TokenBucket(0.0, 10.0))


def test_a_paused_cluster_acts_on_nobody_but_takes_taints_away() -> None:
    guards = look(nodes(10, 5))
    planned, left = plan_actions(
        [case("a", 9000, True), case("e", 0, True, "ready")], guards, TokenBucket(1, 0.0), 0.0, RULES
    )
    assert [(one.node, one.action, bool(one.objection)) for one in planned] == [
        ("e", "untaint", False),
        ("a", "evict", True),
    ]
    assert left == TokenBucket(1, 0.0)
    assert guards.held_until_s == {CLUSTER: 300.0}


def test_guards_that_have_seen_nothing_let_nothing_pass() -> None:
    planned, _ = plan_actions([case("a", 9000, True)], Guards(), TokenBucket(1, 0.0), math.inf, RULES)
    assert [one.objection for one in planned] == ["waits for its turn"]


@pytest.mark.parametrize(
    ("under_way", "tokens", "going"),
    [
        ([], 2, ["a", "b"]),
        ([], 1.5, ["a"]),
        ([], 0, []),
        (["a"], 2, ["b"]),
        (["a", "b"], 2, []),
        (["x", "y", "z"], 2, []),
    ],
)
def test_few_pods_of_a_node_go_at_a_time(under_way: list[str], tokens: float, going: list[str]) -> None:
    found, left = plan_evictions(["c", "b", "a"], under_way, TokenBucket(tokens, 0.0), 0.0, RULES)
    assert found == going
    assert left.tokens == tokens - len(going)


def test_pods_of_all_lost_nodes_go_at_one_pace() -> None:
    bucket, gone = TokenBucket(2, 0.0), 0
    for now_s in range(61):
        for node in range(5):
            going, bucket = plan_evictions([f"{node}-{now_s}-{i}" for i in range(9)], [], bucket, float(now_s), RULES)
            gone += len(going)
    assert gone == 2 + 10
    assert plan_evictions(["a"], [], TokenBucket(2, 0.0), 0.0, Rules(pods_per_min=0))[0] == []
