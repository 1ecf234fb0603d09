"""The controller of the gate: pods go in order as room comes, whatever fails or dies meanwhile."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from bus_rights_rig import free_port
from extender_rig import Said, bind, extending, node, offer
from fixture_types import Until

from services.central.core.lost_nodes.lost_node import CnrTaint
from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.cluster.placement_view import NodeState
from services.central.core.scheduling.free_room import free_room
from services.central.core.scheduling.waiting_pods import WaitingPods, waiting_pod
from services.central.leadership.leader import NotLeading
from services.central.scheduling.gates import MOST_RELEASED, GateController, GateView
from shared.adapters.clock import SystemClock
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.api_kind import PODS
from shared.errors import Refused
from shared.fakes.memory_objects import MemoryObjects

OTHER = "example.org/quota"


def gated(
    name: str, cpu_millis: int = 100, *, age: int = 0, gates: tuple[str, ...] = (GATE,), **spec: Any
) -> dict[str, Any]:
    created = datetime.fromtimestamp(1_000_000 - age, UTC).isoformat()
    requests = {RECLAIMED_CPU: str(cpu_millis)}
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": created},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            "schedulingGates": [{"name": gate} for gate in gates],
            **spec,
        },
    }


class World:
    """Pods in memory and a controller that sees them; `free_millis` None: nobody knows what is free."""

    def __init__(self, *pods: dict[str, Any], free_millis: int | None = 250, hold: bool = True) -> None:
        self.clock = SystemClock()
        self.api, self.said = MemoryObjects(self.clock), Said()
        self.waiting, self.free_millis, self.hold = WaitingPods(), free_millis, hold
        self.given: dict[str, int] = {}
        for pod in pods:
            self.api.put(PODS, pod)
        self.begin()

    def begin(self) -> None:
        """Another one leads from now on."""
        view = GateView(self.waiting, self._free, hold=self.hold)
        self.controller = GateController(view, self.api, self.clock, self.said)

    def _free(self) -> Mapping[str, int] | None:
        if self.free_millis is None:
            return None
        return {RECLAIMED_CPU: self.free_millis - sum(self.given.values()), RECLAIMED_MEMORY: 0}

    def look(self) -> None:
        """See what the API server has."""
        for uid in list(self.waiting.pods):
            self.waiting.put(uid, None)
        for (kind, _, _), document in self.api.documents.items():
            if kind == PODS:
                self.waiting.put(document["metadata"]["uid"], waiting_pod(document))

    def step(self) -> None:
        """See, and make one pass."""
        self.look()
        asyncio.run(self.controller.reconcile())

    def place(self, name: str) -> None:
        """Give a pod a node, as a scheduler does."""
        pod = self.api.documents[PODS, "team", name]
        assert not pod["spec"].get("schedulingGates"), "a scheduler does not look at a gated pod"
        self.given[name] = int(pod["spec"]["containers"][0]["resources"]["requests"][RECLAIMED_CPU])
        self.api.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": "n1"}})

    @property
    def released(self) -> list[str]:
        """Pods whose gate was taken away, in order."""
        return [name for verb, _, name in self.api.writes if verb == "patch"]

    def gates(self, name: str) -> list[str]:
        pod = self.api.documents[PODS, "team", name]
        return [one["name"] for one in pod["spec"].get("schedulingGates") or ()]


def test_pods_go_in_order_while_there_is_room_and_a_second_pass_changes_nothing() -> None:
    world = World(gated("young", age=1), gated("old", age=9), gated("late"))
    world.step()
    assert world.released == ["old", "young"]
    world.step()
    assert world.released == ["old", "young"]
    assert world.gates("late") == [GATE]
    assert world.controller.state() == {"waiting": 1, "failure": "", "not_released": {}}


def test_a_pod_counts_until_its_node_is_seen_and_then_on_its_node() -> None:
    world = World(gated("a", 200, age=2), gated("b", 200, age=1))
    world.step()
    asyncio.run(world.controller.reconcile())  # what was written is not seen yet
    world.step()  # it is on its way through a scheduler
    world.place("a")
    world.step()
    assert world.released == ["a"]
    world.free_millis = 400
    world.step()
    assert world.released == ["a", "b"]


def test_a_pod_with_another_gate_is_left_alone_and_holds_nobody_up() -> None:
    world = World(gated("a", 999, age=9, gates=(GATE, OTHER)), gated("b", 999, age=8, gates=(OTHER,)), gated("c"))
    world.step()
    assert world.released == ["c"]
    assert (world.gates("a"), world.gates("b")) == ([GATE, OTHER], [OTHER])


def test_while_nobody_knows_what_is_free_nobody_goes() -> None:
    world = World(gated("a"), free_millis=None)
    world.step()
    assert world.released == []
    assert "nobody is let go" in world.controller.state()["failure"]
    world.free_millis = 100
    world.step()
    assert (world.released, world.controller.failure) == (["a"], "")


def test_before_the_gate_is_switched_off_everybody_goes_and_others_gates_stay() -> None:
    world = World(gated("a", 999), gated("b", 999), gated("c", gates=(GATE, OTHER)), free_millis=None, hold=False)
    world.step()
    assert world.released == ["a", "b"]
    assert world.gates("c") == [GATE, OTHER]


def test_as_many_go_in_one_pass_as_a_scheduler_has_to_do() -> None:
    pods = [gated(f"p{number:03}", 1) for number in range(MOST_RELEASED + 5)]
    world = World(*pods, free_millis=9999)
    world.step()
    assert len(world.released) == MOST_RELEASED
    world.step()
    assert len(world.released) == MOST_RELEASED + 5


def test_a_pod_that_cannot_be_written_is_named_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(gated("a", age=2), gated("b", age=1))
    patch = world.api.patch

    async def refuses_one(kind: Any, document: Any, **more: Any) -> Any:
        if document["metadata"]["name"] == "a":
            raise Refused("not yours")
        return await patch(kind, document, **more)

    monkeypatch.setattr(world.api, "patch", refuses_one)
    world.step()
    assert world.released == ["b"]
    assert world.controller.state()["not_released"] == {"team/a": "not yours"}
    monkeypatch.undo()
    world.step()
    assert world.released == ["b", "a"]
    assert world.controller.state()["not_released"] == {}


def test_a_pod_of_the_same_name_that_came_since_is_another_one() -> None:
    world = World(gated("a"))
    world.look()
    world.api.drop(PODS, "a", "team")
    world.api.put(PODS, gated("a") | {"metadata": {**gated("a")["metadata"], "uid": "uid-2"}})
    asyncio.run(world.controller.reconcile())
    assert world.gates("a") == [GATE]
    world.api.drop(PODS, "a", "team")
    asyncio.run(world.controller.reconcile())
    assert world.said.decided[-1:] == [], "one that is gone was not let go"


def test_who_does_not_lead_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(gated("a"), gated("b"))
    asked = []

    async def refuses(kind: Any, document: Any, **more: Any) -> Any:
        asked.append(document["metadata"]["name"])
        raise NotLeading("another one leads")

    monkeypatch.setattr(world.api, "patch", refuses)
    with pytest.raises(NotLeading):
        world.step()
    assert asked == ["a"]


class Died(Exception):
    """The process ended here."""


@pytest.mark.parametrize("writes", range(5))
@pytest.mark.parametrize("after", [True, False], ids=["the write was made", "the write was not made"])
def test_whoever_leads_next_goes_on_wherever_the_former_one_died(
    monkeypatch: pytest.MonkeyPatch, writes: int, after: bool
) -> None:
    world = World(*[gated(f"p{number}", age=9 - number) for number in range(6)], free_millis=450)
    patch = world.api.patch

    async def dies(kind: Any, document: Any, **more: Any) -> Any:
        if len(world.released) == writes and not after:
            raise Died
        found = await patch(kind, document, **more)
        if len(world.released) > writes:
            raise Died
        return found

    monkeypatch.setattr(world.api, "patch", dies)
    if writes < 4:
        with pytest.raises(Died):
            world.step()
    monkeypatch.undo()
    world.begin()
    for _ in range(3):
        world.step()
    assert world.released == ["p0", "p1", "p2", "p3"]


def test_decisions_say_who_went_and_what_the_others_wait_for() -> None:
    world = World(gated("a", 200, age=3), gated("b", 200, age=2), gated("c", 1, age=1))
    world.step()
    said = {one.about.name: (one.verdict, one.message) for one in world.said.decided}
    assert said["a"][0] == "released"
    assert said["b"] == ("gated", f"it waits for room: 50 of 200 {RECLAIMED_CPU} are free")
    assert said["c"] == ("gated", "it waits behind team/b, which comes first and waits for room")
    assert world.said.decided[1].why[0].numbers == {"resource": RECLAIMED_CPU, "asked": 200, "free": 50}


@pytest.mark.parametrize(
    ("document", "waits"),
    [
        pytest.param(gated("a"), True, id="it waits"),
        pytest.param(gated("a", gates=()), True, id="it waits for a scheduler"),
        pytest.param(gated("a", nodeName="n1"), False, id="it has a node"),
        pytest.param(gated("a") | {"status": {"phase": "Failed"}}, False, id="it is over"),
        pytest.param(gated("a", 0), False, id="it takes nothing"),
        pytest.param(
            gated("a") | {"metadata": {**gated("a")["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, False,
            id="it goes",
        ),
    ],
)  # fmt: skip
def test_which_pods_wait(document: dict[str, Any], waits: bool) -> None:
    assert (waiting_pod(document) is not None) == waits


@pytest.mark.parametrize("broken", [{"spec": 5}, {"metadata": []}, {"status": "x"}, {"metadata": {"name": 7}}], ids=str)
def test_a_pod_that_cannot_be_read_is_refused_and_nothing_else(broken: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        waiting_pod(gated("a") | broken)


def test_an_age_that_cannot_be_read_is_the_youngest() -> None:
    pod = waiting_pod(gated("a") | {"metadata": {**gated("a")["metadata"], "creationTimestamp": "long ago"}})
    assert pod is not None
    assert pod.created_s == float("inf")


def state(cpu: int, memory: int = 10, *, taken: int = 0, taint: str = "") -> NodeState:
    taints = (CnrTaint(key="k", effect=taint, qos_level="reclaimed_cores"),) if taint else ()
    offered = {RECLAIMED_CPU: cpu, RECLAIMED_MEMORY: memory}
    return NodeState("n", taints=taints, offered=offered, requested={RECLAIMED_CPU: taken, RECLAIMED_MEMORY: 0})


def test_what_is_free_is_what_nodes_offer_and_have_not_given_out() -> None:
    nodes = [
        state(100, taken=30),
        state(50, taken=60),  # sold beyond what it offers: it has nothing, and takes nothing from the others
        state(1000, taint="NoSchedule"),
        state(5, taint="PreferNoSchedule"),
        NodeState("silent"),
    ]
    assert free_room(nodes) == {RECLAIMED_CPU: 75, RECLAIMED_MEMORY: 20}
    assert free_room([]) == {RECLAIMED_CPU: 0, RECLAIMED_MEMORY: 0}


async def test_the_extenders_leader_lets_pods_go_as_nodes_offer_more(until: Until) -> None:
    async with extending(free_port(), node("n1"), gate="hold") as rig:
        rig.api.put(PODS, gated("a", 600, age=2))
        rig.api.put(PODS, gated("b", 600, age=1))
        await rig.hear(offer("n1", 1, 700))

        def gates(name: str) -> object:
            return rig.api.documents[PODS, "team", name]["spec"].get("schedulingGates")

        await until(lambda: not gates("a"))
        assert gates("b")
        bind(rig, rig.api.documents[PODS, "team", "a"], "n1")
        await rig.hear(offer("n1", 2, 1200))
        await until(lambda: not gates("b"))


async def test_where_the_gate_is_off_nobody_looks_at_it() -> None:
    async with extending(free_port(), node("n1")) as rig:
        assert rig.extender.waiting is None
        rig.api.put(PODS, gated("a"))
        assert not rig.extender.mirrors._pods.objects
