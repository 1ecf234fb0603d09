"""Which nodes take a pod, by all that is known of them; and the race for room that falls."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.scheduling.cluster.judge import Judge, Now
from services.central.core.scheduling.cluster.node_reports import (
    MeasuredNode,
    OfferingCnr,
    SaidByNode,
    SchedulableNode,
)
from services.central.core.scheduling.cluster.placement_view import PlacementView, ViewRules
from services.central.core.scheduling.cluster.pod_asks import ContainerAsk, PodAsk, PodAsked, PodSeen
from services.central.core.scheduling.cluster.reservations import MOST_HELD, Reservations
from services.central.core.scheduling.cluster.suits import Strategy, SuitRules, Suits
from services.central.core.scheduling.load.expected_use import LoadReport, UsedByPod
from services.central.core.scheduling.load.filter import LoadLimits
from services.central.core.scheduling.numa.machine import Machine, NumaNode
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY

NODE = SchedulableNode("n1", {"cpu": 10_000, "memory": 1000})
BATCH = PodAsk(qos="reclaimed_cores", cpu_request_millis=400, memory_request_bytes=10, prod=False)
SERVICE = PodAsk(cpu_request_millis=2000, cpu_limit_millis=2000, memory_request_bytes=100, memory_limit_bytes=100)
PACKS: dict[str, Strategy] = {"sublet-pack": "most_allocated"}
HOLD_S, WALL_S = 20.0, 1000.0
AT = Now(0.0, WALL_S)


def offer(cpu_millis: int, memory_bytes: int = 1 << 30) -> dict[str, int]:
    return {RECLAIMED_CPU: cpu_millis, RECLAIMED_MEMORY: memory_bytes}


def said(cpu_millis: int, used_millis: int | None = None, heard_s: float = 0.0) -> SaidByNode:
    load = None if used_millis is None else LoadReport(WALL_S, {"cpu": used_millis, "memory": 100})
    return SaidByNode(heard_s, offer(cpu_millis), load)


def pod(uid: str = "p", ask: PodAsk = BATCH, node: str = "", assigned_at: float | None = None) -> PodSeen:
    return PodSeen(uid, "team", uid, ask, node, assigned_at)


@dataclass
class Rig:
    limits: LoadLimits = field(default_factory=LoadLimits)
    view: PlacementView = field(default_factory=lambda: PlacementView(ViewRules()))
    held: Reservations = field(default_factory=lambda: Reservations(HOLD_S))

    def __post_init__(self) -> None:
        self.judge = Judge(self.view, self.held, self.limits)
        self.suits = Suits(self.view, self.judge, SuitRules({"cpu": 1, "memory": 1}, strategies=PACKS))
        self.view.put_node("uid-n1", NODE)

    def why(self, seen: PodSeen, now: Now = AT, node: str = "n1") -> str:
        found = self.judge.judged(self.judge.looking(PodAsked(seen)), [node], now)[node]
        assert found.standing.fits is (found.rule == "fits")
        assert found.standing.fits is not bool(found.standing.reason)
        return found.standing.reason

    def score(self, seen: PodSeen, now: Now = AT) -> int:
        return self.suits.scores(self.judge.looking(PodAsked(seen)), ["n1"], now)["n1"]


def test_a_node_of_which_nothing_is_known_takes_everybody_and_is_nobodys_first_choice() -> None:
    rig = Rig()
    assert rig.why(pod(), node="strange") == ""
    assert rig.why(pod(ask=SERVICE)) == ""
    assert rig.score(pod(ask=SERVICE)) == 0


def test_what_pods_of_the_node_take_is_not_there_for_another_one() -> None:
    rig = Rig()
    rig.view.hear("n1", said(1000))
    rig.view.put_pod("a", pod("a", node="n1"))
    assert rig.why(pod()) == ""
    rig.view.put_pod("b", pod("b", node="n1"))
    assert rig.why(pod()) == f"Insufficient {RECLAIMED_CPU}: asks for 400, 200 of 1000 left"
    rig.view.put_pod("a", None)
    assert rig.why(pod()) == ""


def test_an_offer_below_what_was_given_out_takes_nobody_that_asks_for_anything() -> None:
    rig = Rig()
    rig.view.put_pod("a", pod("a", node="n1"))
    rig.view.hear("n1", said(100))
    assert rig.why(pod()).startswith("Insufficient")
    assert rig.why(pod(ask=SERVICE)) == ""


def test_the_newest_word_of_the_node_counts_and_after_its_time_that_of_its_objects() -> None:
    rig = Rig()
    rig.view.put_cnr("uid-c", OfferingCnr("n1", offered=offer(100)))
    rig.view.hear("n1", said(1000))
    rig.view.hear("n1", said(500))
    assert rig.why(pod()) == ""
    late = Now(30.5, WALL_S + 30.5)
    assert "100 of 100 left" in rig.why(pod(), late)
    assert rig.why(pod(), AT) != ""  # an answer of before does not bring it back
    rig.view.hear("n1", said(500, heard_s=31.0))
    assert rig.why(pod(), Now(31.0, WALL_S + 31)) == ""


def test_without_a_cnr_the_nodes_own_amounts_count_and_a_withdrawn_one_always() -> None:
    rig = Rig()
    rig.view.put_node("uid-n1", replace(NODE, offered=offer(300)))
    assert rig.why(pod()).startswith("Insufficient")
    rig.view.put_cnr("uid-c", OfferingCnr("n1", offered=offer(5000)))
    assert rig.why(pod()) == ""
    rig.view.put_node("uid-n1", replace(NODE, offered=offer(0)))
    assert rig.why(pod()).startswith("Insufficient")


def test_a_message_of_a_node_that_does_not_exist_is_not_kept() -> None:
    rig = Rig()
    rig.view.hear("ghost", said(1000))
    assert "ghost" not in rig.view.heard
    rig.view.hear("n1", said(0))
    rig.view.put_node("uid-n1", None)
    assert rig.why(pod()) == ""


def test_a_successor_of_a_node_is_not_gone_with_it() -> None:
    rig = Rig()
    rig.view.put_node("uid-2", replace(NODE, offered=offer(0)))
    rig.view.put_node("uid-n1", None)
    assert rig.why(pod()).startswith("Insufficient")


def test_a_taint_of_the_cnr_keeps_batch_work_away_and_no_eviction_helps() -> None:
    rig = Rig()
    taint = CnrTaint(key="node.kubernetes.io/unschedulable", effect="NoScheduleForReclaimedTasks")
    rig.view.put_cnr("uid-c", OfferingCnr("n1", (taint,), offer(5000)))
    verdict = rig.judge.judged(rig.judge.looking(PodAsked(pod())), ["n1"], AT)["n1"].standing
    assert (verdict.fits, verdict.unresolvable) == (False, True)
    assert verdict.reason == "CNR taint node.kubernetes.io/unschedulable is not tolerated"
    assert rig.why(pod(ask=SERVICE)) == ""
    rig.view.put_cnr("uid-c", OfferingCnr("n1", (), offer(5000)))
    assert rig.why(pod()) == ""


def test_a_hot_node_takes_nobody_and_says_how_hot_it_would_be() -> None:
    rig = Rig()
    rig.view.hear("n1", said(5000, used_millis=6000))
    assert rig.why(pod(ask=SERVICE)) == "usage:cpu: 77 % with this pod, at most 65 %"
    rig.view.hear("n1", said(5000, used_millis=4000))
    assert rig.why(pod(ask=SERVICE)) == ""


def test_figures_that_are_too_old_keep_pods_away() -> None:
    rig = Rig()
    rig.view.put_metric("uid-m", MeasuredNode("n1", LoadReport(WALL_S, {"cpu": 100})))
    assert rig.why(pod(ask=SERVICE)) == ""
    late = Now(200, WALL_S + 200)
    assert rig.why(pod(ask=SERVICE), late) == "metric_expired: measured 200 s ago"
    assert rig.score(pod(ask=SERVICE), late) == 0


def test_a_pod_that_the_figures_do_not_show_counts_by_its_estimate() -> None:
    rig = Rig()
    rig.view.hear("n1", said(5000, used_millis=4000))
    rig.view.put_pod("young", pod("young", SERVICE, "n1", WALL_S))
    assert rig.why(pod(ask=SERVICE)) == "usage:cpu: 74 % with this pod, at most 65 %"
    shown = LoadReport(WALL_S, {"cpu": 4000}, pods={"team/young": UsedByPod({"cpu": 1700, "memory": 90}, True)})
    rig.view.hear("n1", SaidByNode(0, offer(5000), shown))
    assert rig.why(pod(ask=SERVICE)) == ""


def test_a_pod_on_its_way_counts_for_load_as_for_room_but_not_for_itself() -> None:
    rig = Rig()
    rig.view.hear("n1", said(700, used_millis=4000))
    free = rig.score(pod("other", SERVICE))
    rig.held.reserve("a", BATCH, ["n1"], 0)
    rig.held.reserve("s", SERVICE, ["n1"], 0)
    assert rig.why(pod("b")) == f"Insufficient {RECLAIMED_CPU}: asks for 400, 300 of 700 left"
    assert rig.why(pod("a")) == ""
    assert rig.why(pod("other", SERVICE)).startswith("usage:cpu")
    assert rig.score(pod("other", SERVICE)) < free
    rig.held.release("a")
    assert rig.why(pod("b")) == ""


def test_room_that_others_make_must_be_enough() -> None:
    rig = Rig()
    rig.view.hear("n1", said(800))
    for uid in "ab":
        rig.view.put_pod(uid, pod(uid, node="n1"))
    looking = rig.judge.looking(PodAsked(pod(ask=replace(BATCH, cpu_request_millis=500))))
    assert not rig.judge.fits_without(looking, "n1", ["a", "unknown", "a"], AT)
    assert rig.judge.fits_without(looking, "n1", ["a", "b"], AT)
    rig.view.hear("n1", said(400))
    assert not rig.judge.fits_without(looking, "n1", ["a", "b"], AT)
    assert rig.judge.fits_without(looking, "strange", [], AT)


def bound(uid: str, cpus: int, node: str = "", *, exclusive: bool = False, assigned_at: float | None = None) -> PodSeen:
    containers = (ContainerAsk("main", (("cpu", cpus * 1000), ("memory", 10))),)
    ask = PodAsk(qos="dedicated_cores", cpu_request_millis=100, numa_exclusive=exclusive, containers=containers)
    return PodSeen(uid, "team", uid, ask, node, assigned_at)


def numas(*free: int, shown: str = "", wall_s: float = WALL_S) -> SaidByNode:
    """Two NUMA nodes of 8 CPUs, with so many millis free."""
    whole = {"cpu": 8000, "memory": 1000}
    nodes = tuple(NumaNode(number, whole, {"cpu": millis, "memory": 1000}, whole) for number, millis in enumerate(free))
    machine = Machine("single_numa_container", nodes)
    return SaidByNode(0, None, None, wall_s, machine, frozenset([shown] if shown else []))


class TestNumaNodes:
    def test_a_pod_that_no_numa_node_has_room_for_goes_elsewhere(self) -> None:
        rig = Rig()
        rig.view.hear("n1", numas(3000, 2000))
        assert rig.why(bound("p", 4)) == "no NUMA node has room for it, by single_numa_container"
        assert rig.why(bound("p", 3)) == ""
        assert rig.why(pod(ask=SERVICE)) == ""

    def test_one_that_was_given_the_node_counts_there_until_it_is_shown_or_should_have_been(self) -> None:
        rig = Rig()
        rig.view.put_pod("a", bound("a", 6, "n1", assigned_at=WALL_S - 5))
        rig.view.hear("n1", numas(8000, 4000))
        assert rig.why(bound("p", 8)) != ""
        assert rig.why(bound("p", 4)) == ""
        rig.view.hear("n1", numas(8000, 4000, shown="a"))
        assert rig.why(bound("p", 8)) == ""
        rig.view.hear("n1", numas(8000, 4000, wall_s=WALL_S + 16))
        assert rig.why(bound("p", 8)) == ""

    def test_one_that_was_let_onto_it_counts_where_the_rule_would_put_it(self) -> None:
        rig = Rig()
        rig.view.hear("n1", numas(8000, 4000))
        rig.held.reserve("a", bound("a", 6).ask, ["n1"], 0)
        assert rig.why(bound("p", 8)) != ""
        assert rig.why(bound("p", 4)) == ""
        assert rig.why(bound("a", 8)) == ""
        rig.held.reserve("a", bound("a", 1, exclusive=True).ask, ["n1"], 0)
        assert rig.why(bound("p", 5)) != ""
        assert rig.why(bound("p", 4)) == ""

    def test_one_that_finds_no_place_takes_none(self) -> None:
        rig = Rig()
        rig.view.hear("n1", numas(3000, 2000))
        rig.held.reserve("a", bound("a", 9).ask, ["n1"], 0)
        assert rig.why(bound("p", 3)) == ""

    def test_more_room_is_a_better_place(self) -> None:
        rig = Rig()
        rig.view.hear("n1", numas(8000, 8000))
        most = rig.score(bound("p", 4))
        rig.view.hear("n1", numas(5000, 5000))
        assert 0 < rig.score(bound("p", 4)) < most


def test_a_profile_packs_where_another_one_spreads() -> None:
    rig = Rig()
    rig.view.hear("n1", said(10_000))
    looking = {name: rig.judge.looking(PodAsked(pod(), scheduler=name)) for name in ("sublet-spread", "sublet-pack")}
    empty = {name: rig.suits.scores(one, ["n1"], AT)["n1"] for name, one in looking.items()}
    rig.view.put_pod("a", pod("a", replace(BATCH, cpu_request_millis=8000, memory_request_bytes=8 << 26), "n1"))
    fuller = {name: rig.suits.scores(one, ["n1"], AT)["n1"] for name, one in looking.items()}
    assert empty["sublet-pack"] < fuller["sublet-pack"]
    assert empty["sublet-spread"] > fuller["sublet-spread"]


class TestReservations:
    def test_who_is_asked_about_again_has_taken_nothing_of_before(self) -> None:
        held = Reservations(HOLD_S)
        held.reserve("a", BATCH, ["n1", "n2"], 0)
        held.reserve("a", BATCH, ["n2"], 1)
        assert (dict(held.on("n1")), set(held.on("n2"))) == ({}, {"a"})
        held.reserve("a", BATCH, [], 2)
        assert len(held) == 0

    def test_they_end_with_their_time_and_with_the_pod(self) -> None:
        held = Reservations(HOLD_S)
        held.reserve("a", BATCH, ["n1"], 0)
        held.reserve("b", BATCH, ["n1"], 5)
        held.expire(HOLD_S - 0.1)
        assert set(held.on("n1")) == {"a", "b"}
        held.expire(HOLD_S)
        assert set(held.on("n1")) == {"b"}
        held.release("b")
        held.release("b")
        assert not held.on("n1")

    def test_they_have_a_bound(self) -> None:
        held = Reservations(HOLD_S)
        for number in range(MOST_HELD + 3):
            held.reserve(str(number), BATCH, ["n1"], 0)
        assert len(held) == len(held.on("n1")) == MOST_HELD
        assert "0" not in held.on("n1")


@dataclass
class Race:
    """A scheduler that binds one pod after the other, and an extender that sees each only some cycles later."""

    seed: int
    lag: int
    reserves: bool = True
    nodes: int = 8
    above: list[str] = field(default_factory=list)
    placed: Counter[str] = field(default_factory=Counter)

    def run(self, pods: int) -> None:
        rig, dice = Rig(), random.Random(self.seed)
        names = [f"n{number}" for number in range(self.nodes)]
        offered = {name: dice.randrange(10_000, 60_000) for name in names}
        for name in names:
            rig.view.put_node(f"uid-{name}", replace(NODE, name=name))
            rig.view.hear(name, said(offered[name]))
        unseen: list[tuple[int, PodSeen]] = []
        for cycle in range(pods):
            now = Now(cycle * 0.005, WALL_S + cycle * 0.005)
            if dice.random() < 0.2:
                name = dice.choice(names)
                offered[name] = offered[name] * dice.randrange(50, 100) // 100
                rig.view.hear(name, said(offered[name], heard_s=now.monotonic_s))
            while unseen and unseen[0][0] <= cycle:
                seen = unseen.pop(0)[1]
                rig.view.put_pod(seen.uid, seen)
                rig.held.release(seen.uid)
            rig.held.expire(now.monotonic_s)
            ask = replace(BATCH, cpu_request_millis=dice.randrange(100, 2000))
            asked = PodAsked(pod(f"p{cycle}", ask))
            judged = rig.judge.judged(rig.judge.looking(asked), names, now)
            fits = [name for name in names if judged[name].standing.fits]
            if self.reserves:
                rig.held.reserve(asked.seen.uid, ask, fits, now.monotonic_s)
            if not fits:
                continue
            node = dice.choice(fits)
            self.placed[node] += ask.cpu_request_millis
            if self.placed[node] > offered[node]:
                self.above.append(f"{node}: {self.placed[node]} of {offered[node]}")
            unseen.append((cycle + dice.randrange(1, self.lag + 1), replace(asked.seen, node=node)))
            unseen.sort(key=lambda row: row[0])


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([1, 5, 40]))
def test_of_a_thousand_pods_at_once_none_is_placed_above_what_is_offered(seed: int, lag: int) -> None:
    race = Race(seed, lag)
    race.run(1000)
    assert race.above == []
    assert race.placed.total() > 0


def test_without_reservations_the_same_race_places_pods_above_what_is_offered() -> None:
    race = Race(seed=1, lag=40, reserves=False)
    race.run(1000)
    assert race.above


@pytest.mark.parametrize("lag", [1, 5])
def test_reservations_leave_little_of_an_offer_unsold(lag: int) -> None:
    """A pod that counts on every node until it is seen keeps room from others for a moment, not for good."""
    race = Race(seed=3, lag=lag)
    race.run(1000)
    rest = Race(seed=3, lag=1, reserves=False)
    rest.run(1000)
    assert race.placed.total() > 0.9 * rest.placed.total()
