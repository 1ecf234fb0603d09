"""The extender's own process: it answers schedulers by what nodes said a moment ago, and by objects without the bus."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from bus_rights_rig import free_port
from extender_rig import ExtenderRig, asked, batch_pod, bind, extending, node, offer

from services.central.adapters.https.late_bus import LateBus
from services.central.core.scheduling.cluster.judge import MOST_CHARACTERS, Now
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.extender import PLAN, load_limits
from services.central.https_main import HttpsParts
from services.central.scheduling.answers import MOST_BYTES
from services.central.scheduling.waker import SchedulerWaker
from services.central.settings import CentralSettings, LoadSettings
from shared.adapters.clock import SystemClock
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.api_kind import CNRS, NODE_METRICS, NODES, PODS
from shared.errors import Refused
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import CommonSettings

Until = Callable[[Callable[[], object]], Awaitable[None]]
Document = dict[str, Any]


async def test_what_a_node_said_a_moment_ago_counts_and_not_what_its_object_says() -> None:
    rich = node("n1", **{RECLAIMED_CPU: "9000", RECLAIMED_MEMORY: "1Gi"})
    async with extending(free_port(), rich, node("n2")) as rig:
        await rig.hear(offer("n1", 1, 1000))
        await rig.hear(offer("n2", 1, 1000))
        assert (await rig.filter(batch_pod("a"), "n1", "n2"))["NodeNames"] == ["n1", "n2"]
        await rig.hear(offer("n1", 2, 100))
        reply = await rig.filter(batch_pod("a"), "n1", "n2")
        assert reply["NodeNames"] == ["n2"]
        assert reply["FailedNodes"] == {"n1": f"Insufficient {RECLAIMED_CPU}: asks for 400, 100 of 100 left"}


async def test_a_pod_counts_where_it_was_let_onto_until_it_is_seen_on_a_node_or_gone(until: Until) -> None:
    async with extending(free_port(), node("n1"), node("n2")) as rig:
        for name in ("n1", "n2"):
            await rig.hear(offer(name, 1, 700))
        assert (await rig.filter(batch_pod("a"), "n1", "n2"))["NodeNames"] == ["n1", "n2"]
        assert (await rig.filter(batch_pod("b"), "n1", "n2"))["NodeNames"] == []
        bind(rig, batch_pod("a"), "n2")
        await until(lambda: len(rig.extender.view.pods) == 1)
        assert (await rig.filter(batch_pod("b"), "n1", "n2"))["NodeNames"] == ["n1"]
        rig.api.drop(PODS, "a", "team")
        await until(lambda: len(rig.extender.view.pods) == 0)
        assert (await rig.filter(batch_pod("b"), "n1", "n2"))["NodeNames"] == ["n1", "n2"]


async def test_while_pods_are_not_seen_none_that_was_let_onto_a_node_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        await rig.filter(batch_pod("a"), "n1")
        monkeypatch.setattr(type(rig.extender.mirrors), "follows_pods", property(lambda _self: False))
        monkeypatch.setattr(rig.extender.reservations, "expire", lambda _now_s: pytest.fail("forgotten"))
        assert (await rig.filter(batch_pod("b"), "n1"))["NodeNames"] == []


async def test_scores_prefer_the_cooler_node_and_decisions_say_why_a_node_was_not_chosen() -> None:
    async with extending(free_port(), node("cool"), node("warm"), node("hot")) as rig:
        for name, used in (("cool", 500), ("warm", 5000), ("hot", 9000)):
            await rig.hear(offer(name, 1, 4000, used))
        question = asked(batch_pod("a"), "cool", "warm", "hot")
        assert (await rig.filter(batch_pod("a"), "cool", "warm", "hot"))["NodeNames"] == ["cool", "warm"]
        assert rig.said.decided == []
        status, scores = await rig.post("/v1/prioritize", {**question, "NodeNames": ["cool", "warm"]})
        assert status == 200
        points = {row["Host"]: row["Score"] for row in scores}
        assert points["cool"] > points["warm"]
        (said,) = rig.said.decided
        assert (str(said.about), said.verdict) == ("pod/team/a", "let_onto")
        assert said.message.startswith("2 of 3 nodes take it; cool suits best")
        assert {(one.rule, one.numbers["node"]) for one in said.why} == {
            ("load", "hot"), ("suits", "cool"), ("suits", "warm"),
        }  # fmt: skip


async def test_a_pod_that_no_node_takes_is_said_at_once() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 10))
        await rig.filter(batch_pod("a"), "n1")
        (said,) = rig.said.decided
        assert (said.verdict, said.why[0].rule) == ("refused", "reclaimed_fit")
        assert said.why[0].numbers == {
            "node": "n1", "resource": RECLAIMED_CPU, "asked": 400, "left": 10, "offered": 10,
        }  # fmt: skip


async def test_a_taint_of_the_cnr_keeps_batch_work_away_for_good(until: Until) -> None:
    async with extending(free_port(), node("n1")) as rig:
        taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoScheduleForReclaimedTasks"}
        rig.api.put(CNRS, {"metadata": {"name": "n1"}, "spec": {"taints": [taint]}})
        await until(lambda: rig.extender.view.state("n1", 0).taints)
        reply = await rig.filter(batch_pod("a"), "n1")
        assert list(reply["FailedAndUnresolvableNodes"]) == ["n1"]


async def test_without_the_bus_objects_speak_for_the_nodes(until: Until) -> None:
    used = {"resources": {"cpu": "9", "memory": "1Gi"}}
    async with extending(free_port(), node("n1"), node("n2", **{RECLAIMED_CPU: "1k", RECLAIMED_MEMORY: "1Gi"})) as rig:
        moment = rig.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
        metric = {"updateTime": moment, "nodeMetric": {"nodeUsage": used}}
        rig.api.put(NODE_METRICS, {"metadata": {"name": "n1"}, "status": metric})
        await until(lambda: rig.extender.view.state("n1", 0).load)
        reply = await rig.filter(batch_pod("a", 1200), "n1", "n2", "unknown")
        assert reply["NodeNames"] == ["unknown"]
        assert set(reply["FailedNodes"]) == {"n1", "n2"}


async def test_victims_are_not_chosen_anew_and_nodes_where_they_do_not_help_are_left_out() -> None:
    async with extending(free_port(), node("n1"), node("n2")) as rig:
        await rig.hear(offer("n1", 1, 1000))
        await rig.hear(offer("n2", 1, 10))
        victims = {name: {"Pods": [{"UID": "x"}], "NumPDBViolations": 0} for name in ("n1", "n2")}
        status, reply = await rig.post("/v1/preempt", {"Pod": batch_pod("a"), "NodeNameToMetaVictims": victims})
        assert (status, list(reply["NodeNameToMetaVictims"])) == (200, ["n1"])
        assert reply["NodeNameToMetaVictims"]["n1"] == victims["n1"]


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/v1/filter", b"{", 400, "body of filter"),
        ("/v1/filter", b'{"NodeNames": ["n1"]}', 200, "bad_request"),
        ("/v1/filter", b'{"Pod": {"metadata": {}}, "NodeNames": ["n1"]}', 400, "want a name"),
        ("/v1/prioritize", b"[]", 200, "[]"),
        ("/v1/preempt", b"{}", 400, "want Pod"),
        ("/v1/bind", b"{}", 404, "binding is the scheduler's own"),
        ("/v2/filter", b"{}", 404, "want POST /v1/filter"),
        ("/v1/filter", b" " * (MOST_BYTES + 1), 413, "more than"),
    ],
)
async def test_what_cannot_be_answered_is_said_clearly_and_loses_nothing(
    path: str, body: bytes, status: int, word: str
) -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        await rig.filter(batch_pod("a"), "n1")
        found, reply = await rig.post(path, body)
        assert (found, word in str(reply)) == (status, True), reply
        assert (await rig.filter(batch_pod("b"), "n1"))["NodeNames"] == []


async def test_a_name_that_no_object_has_is_answered_and_not_said() -> None:
    async with extending(free_port(), node("n1")) as rig:
        odd = batch_pod("a") | {"metadata": {"name": "..", "uid": "u"}}
        assert (await rig.filter(odd, "n1"))["NodeNames"] == ["n1"]
        assert rig.said.decided == []


async def test_twenty_thousand_names_are_answered() -> None:
    async with extending(free_port(), node("n1")) as rig:
        names = [f"node-{number}.some.very.long.domain.example.com" for number in range(20_000)]
        assert (await rig.filter(batch_pod("a"), *names))["NodeNames"] == names


async def test_before_nodes_and_pods_are_known_nobody_is_answered() -> None:
    api = MemoryObjects(SystemClock())
    api.online = False
    common = CommonSettings(node="n1")
    parts = HttpsParts(api, api.clock, CentralSettings(), "one", LateBus(common, api.clock, name="extender"))
    assert "no certificate yet" in PLAN.build(parts).health().why


def waker(rig: ExtenderRig) -> SchedulerWaker:
    return SchedulerWaker(rig.extender.judge, rig.extender.mirrors, rig.api, rig.clock, 10)


def words(rig: ExtenderRig, name: str) -> str | None:
    found: str | None = rig.api.documents[NODES, "", name]["metadata"].get("annotations", {}).get(REFUSES)
    return found


async def test_a_node_that_gets_hot_or_cool_says_so_once(until: Until) -> None:
    async with extending(free_port(), node("n1"), node("n2")) as rig:
        await rig.hear(offer("n1", 1, 1000, 9000))
        await rig.hear(offer("n2", 1, 1000, 100))
        one = waker(rig)
        await one.wake()
        assert (words(rig, "n1"), words(rig, "n2")) == ("cpu in use", None)
        await until(lambda: rig.extender.view.nodes.things["n1"].refuses)
        before = rig.api.asked
        await one.wake()
        assert rig.api.asked == before
        await rig.hear(offer("n1", 2, 1001, 100))
        await one.wake()
        assert words(rig, "n1") is None


async def test_a_node_that_cannot_be_written_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with extending(free_port(), node("n1"), node("n2")) as rig:
        for name in ("n1", "n2"):
            await rig.hear(offer(name, 1, 1000, 9000))
        patch = rig.api.patch

        async def refuses_one(kind: Any, document: Any, **more: Any) -> Any:
            if document["metadata"]["name"] == "n1":
                raise Refused("no")
            return await patch(kind, document, **more)

        monkeypatch.setattr(rig.api, "patch", refuses_one)
        one = waker(rig)
        await one.wake()
        assert list(one.failures) == ["n1"]
        assert words(rig, "n2") == "cpu in use"


async def test_what_a_node_refuses_is_cut_to_what_may_be_written(until: Until) -> None:
    async with extending(free_port(), node("n1")) as rig:
        taints = [{"key": f"example.com/{number:0>200}", "effect": "NoSchedule"} for number in range(20)]
        rig.api.put(CNRS, {"metadata": {"name": "n1"}, "spec": {"taints": taints}})
        await until(lambda: rig.extender.view.state("n1", 0).taints)
        await waker(rig).wake()
        assert len(words(rig, "n1") or "") == MOST_CHARACTERS


async def test_without_a_mirror_nothing_is_written() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 1000, 9000))
        assert rig.extender.judge.refuses("n1", Now(rig.clock.monotonic(), rig.clock.wall().timestamp()))
        rig.extender.mirrors._needed.append(rig.api.mirror(NODES, dict, lambda: None))
        before = rig.api.asked
        await waker(rig).wake()
        assert rig.api.asked == before


def test_settings_become_the_limits_of_the_rule() -> None:
    plain = load_limits(LoadSettings(percent={"cpu": 50}, expired_fits=True))
    assert (plain.thresholds, plain.aggregate, plain.schedule_when_expired) == ({"cpu": 50}, None, True)
    later = load_limits(LoadSettings(aggregate="p95", aggregate_window_s=300))
    assert later.aggregate is not None
    assert (later.aggregate.kind, later.aggregate.duration_s) == ("p95", 300)
    assert later.aggregated_thresholds == {"cpu": 65, "memory": 95}


async def test_for_whoever_shows_no_certificate_nothing_is_held_back_and_nothing_said() -> None:
    """Any pod of the cluster reaches the port: it must not have all room held back for pods that there are not."""
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 700))
        for number in range(20):
            status, reply = await rig.post("/v1/filter", asked(batch_pod(f"x{number}", 700), "n1"), ours=False)
            assert (status, reply["NodeNames"]) == (200, ["n1"])
        assert rig.said.decided == []
        assert (await rig.filter(batch_pod("a"), "n1"))["NodeNames"] == ["n1"]
        assert len(rig.extender.reservations) == 1


async def test_two_schedulers_at_once_are_not_given_the_same_room() -> None:
    async with extending(free_port(), node("n1")) as rig:
        await rig.hear(offer("n1", 1, 4000))
        replies = await asyncio.gather(*(rig.filter(batch_pod(f"p{number}"), "n1") for number in range(25)))
        assert sum(len(reply["NodeNames"]) for reply in replies) == 10
