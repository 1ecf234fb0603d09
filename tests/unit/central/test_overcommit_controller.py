"""Over-committed nodes over time: a config, Nodes, a kubelet that writes through the webhook, and deaths in between."""

import asyncio
import contextlib
import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from fixture_types import Virtual

from services.central.core.admission.allowed import AdmissionRequest
from services.central.core.overcommit.config_documents import OVERCOMMIT_CONFIGS
from services.central.core.overcommit.node_review import node_patch
from services.central.overcommit.controller import OvercommitController
from services.central.overcommit.view import OvercommitView
from services.central.settings import KubernetesSettings
from shared.adapters.clock import LoopClock
from shared.contracts.cluster.decision import Decided
from shared.contracts.kube.node_conditions import WITHDRAWN
from shared.contracts.kube.overcommit import DOMAIN, POOL_LABEL
from shared.core.api_kind import CNRS, NODES, ApiKind
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects

OWN = {"cpu": "4", "memory": "8Gi"}
Json = dict[str, Any]


class Decisions(list[Decided]):
    """Keeps what is said."""

    def say(self, decided: Decided) -> None:
        if not self or self[-1] != decided:
            self.append(decided)


class Dying(MemoryObjects):
    """Takes so many writes, and then answers nobody."""

    left = 10_000
    admit: Callable[[Json, Json, str], Json]

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Json | None:
        if self.left <= 0:
            raise Unavailable("died")
        self.left -= 1
        there = self.documents.get((kind.whole, "", document["metadata"]["name"]))
        stored = await super().patch(kind, document, status=status)
        if kind == NODES and status and there and stored:
            return self.put(NODES, self.admit(there, stored, "central"))
        return stored


class Cluster:
    """An API server with its webhook, a kubelet a node, and the controller."""

    def __init__(self, **settings: Any) -> None:
        self.clock = LoopClock()
        self.api, self.decisions, self.webhook = Dying(self.clock), Decisions(), True
        self.api.admit = self.admitted
        self.settings = KubernetesSettings.model_validate({"overcommit": {"enabled": True, **settings}})
        self.begin()

    def begin(self) -> None:
        """Another life of the controller."""
        view = OvercommitView(self.api)
        self.mirrors = [asyncio.ensure_future(mirror.run()) for mirror in view.mirrors]
        self.controller = OvercommitController(view, self.api, self.decisions, self.clock, self.settings)

    async def settled(self) -> None:
        """Controller and kubelets work until neither changes anything."""
        before: Any = None
        while before != self.api.documents:
            before = copy.deepcopy(self.api.documents)
            await asyncio.sleep(0)
            await self.controller.reconcile()
            for node in self.api.of(NODES):
                self.kubelet(node["metadata"]["name"])

    def node(self, name: str, pool: str | None = "p", bears: str | None = "9") -> None:
        status = {"allocatable": dict(OWN), "capacity": dict(OWN)}
        self.api.put(
            NODES, {"metadata": {"name": name, "labels": {POOL_LABEL: pool} if pool else {}}, "status": status}
        )
        self.says(name, bears)

    def says(self, name: str, bears: str | None, *conditions: Json, **more: str) -> None:
        ratios = {} if bears is None else {f"{DOMAIN}/{one}_overcommit_ratio": bears for one in ("cpu", "memory")}
        annotations = ratios | {f"{DOMAIN}/{key}": value for key, value in more.items()}
        status = {"conditions": list(conditions)}
        self.api.put(CNRS, {"metadata": {"name": name, "annotations": annotations}, "status": status})

    def config(self, name: str = "c", pool: str = "p", **ratios: str) -> None:
        spec = {"nodeOvercommitSelectorVal": pool, "resourceOvercommitRatio": ratios}
        self.api.put(OVERCOMMIT_CONFIGS, {"metadata": {"name": name}, "spec": spec})

    def kubelet(self, name: str, own: Mapping[str, str] = OWN) -> None:
        """Writes its figures where they are not there, as it does every ten seconds."""
        there = self.api.documents[NODES, "", name]
        if all(there["status"][field] == own for field in ("allocatable", "capacity")):
            return
        new = {**there, "status": {"allocatable": dict(own), "capacity": dict(own)}}
        stored = self.admitted(there, new, f"system:node:{name}")
        if stored != there:
            self.api.put(NODES, stored)

    def admitted(self, there: Json, new: Json, user: str) -> Json:
        fields = {"object": new, "oldObject": there, "subResource": "status", "userInfo": {"username": user}}
        stored = copy.deepcopy(new)
        for operation in node_patch(AdmissionRequest("u", "UPDATE", fields))[0] if self.webhook else ():
            *path, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
            place = stored
            for part in path:
                place = place[part]
            place[last] = operation["value"]
        return stored

    def cpu(self, name: str) -> str:
        return str(self.api.documents[NODES, "", name]["status"]["allocatable"]["cpu"])

    def annotations(self, name: str) -> Json:
        found: Json = self.api.documents[NODES, "", name]["metadata"].get("annotations") or {}
        return {key.removeprefix(f"{DOMAIN}/"): value for key, value in found.items()}

    def status(self, name: str = "c") -> tuple[list[str], dict[str, tuple[str, str]]]:
        found = self.api.documents[OVERCOMMIT_CONFIGS, "", name].get("status") or {}
        conditions = {row["type"]: (row["reason"], row["message"]) for row in found.get("conditions") or ()}
        return found.get("matchedNodeList") or [], conditions


@pytest.fixture
def play(virtual: Virtual) -> Callable[..., None]:
    def run(story: Callable[[Cluster], Awaitable[None]], **settings: Any) -> None:
        async def whole() -> None:
            cluster = Cluster(**settings)
            await story(cluster)
            for mirror in cluster.mirrors:
                mirror.cancel()

        virtual(whole())

    return run


Play = Callable[..., None]


def test_a_config_amplifies_its_nodes_and_its_end_brings_kubelets_figures_back(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.node("n2", pool="other")
        cluster.node("n3", pool=None)
        cluster.config(cpu="1.5")
        await cluster.settled()
        assert [cluster.cpu(name) for name in ("n1", "n2", "n3")] == ["6", "4", "4"]
        said = cluster.annotations("n1")
        assert (said["cpu_overcommit_ratio"], said["realtime_cpu_overcommit_ratio"]) == ("1.5", "9")
        assert (said["original_allocatable_cpu"], said["overcommit_capacity_cpu"]) == ("4", "6")
        assert cluster.annotations("n2") == {}
        assert cluster.status() == (["n1"], {"Valid": ("InForce", ""), "Advertised": ("AsSet", "")})
        assert cluster.decisions[-1].verdict == "as_set"
        cluster.api.drop(OVERCOMMIT_CONFIGS, "c")
        await cluster.settled()
        assert cluster.cpu("n1") == "4"
        assert cluster.annotations("n1") == {}

    play(story)


@pytest.mark.parametrize("writes", range(12))
def test_whatever_dies_between_two_writes_the_next_life_ends_at_the_same(play: Play, writes: int) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config(cpu="2")
        for wanted in ("8", "4"):
            cluster.api.left = writes
            try:
                await cluster.settled()
            except Unavailable:
                assert cluster.cpu("n1") in ("8", "4", "3999m")
            cluster.api.left = 10_000
            cluster.begin()
            await cluster.settled()
            assert cluster.cpu("n1") == wanted
            assert bool(cluster.annotations("n1")) == (wanted == "8")
            cluster.api.drop(OVERCOMMIT_CONFIGS, "c")

    play(story)


def test_what_the_node_bears_no_more_is_withdrawn(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config(cpu="2")
        await cluster.settled()
        cluster.says("n1", "1.25")
        await cluster.settled()
        assert cluster.cpu("n1") == "5"
        assert "n1" in cluster.status()[1]["Advertised"][1]
        cluster.says("n1", "1.00")
        await cluster.settled()
        assert cluster.cpu("n1") == "4"
        assert cluster.decisions[-1].verdict == "bears_less"

    play(story)


def test_an_agent_that_falls_silent_bears_nothing_and_one_that_starts_anew_keeps_its_word(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1", bears="2")
        cluster.config(cpu="2")
        await cluster.settled()
        cluster.says("n1", None)
        await cluster.settled()
        assert cluster.cpu("n1") == "8"
        await asyncio.sleep(601)
        await cluster.settled()
        assert cluster.cpu("n1") == "4"
        assert cluster.decisions[-1].verdict == "unheard"
        cluster.says("n1", "2")
        await cluster.settled()
        assert cluster.cpu("n1") == "8"
        cluster.says("n1", "2", {"type": WITHDRAWN, "status": "True"})
        await cluster.settled()
        assert cluster.cpu("n1") == "4"

    play(story)


def test_a_node_without_an_agent_gets_nothing_unless_the_label_is_enough(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1", bears=None)
        cluster.config(cpu="2")
        await cluster.settled()
        assert cluster.cpu("n1") == ("8" if cluster.settings.overcommit.by_label_alone else "4")

    play(story)
    play(story, by_label_alone=True)


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ({"cpu": "0.9"}, "below 1"),
        ({"cpu": "4.5"}, "above 4"),
        ({"cpu": "1e9"}, "above 4"),
        ({"cpu": "nan"}, "no number"),
        ({"memory": "1.1"}, "most_memory_ratio"),
        ({"cpu": "2", "nvidia.com/gpu": "2"}, "nvidia.com/gpu"),
        ({"cpu": 2}, "want a string"),
    ],
)
def test_a_ratio_that_nobody_can_want_is_refused_and_changes_nothing(play: Play, ratios: Json, words: str) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config(**ratios)
        await cluster.settled()
        assert cluster.annotations("n1") == {}
        nodes, conditions = cluster.status()
        assert nodes == []
        assert conditions["Valid"][0] == "Refused"
        assert words in conditions["Valid"][1]

    play(story)


def test_memory_is_overcommitted_where_an_operator_said_so(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1", bears="1.25")
        cluster.config(memory="1.5")
        await cluster.settled()
        assert cluster.api.documents[NODES, "", "n1"]["status"]["allocatable"] == {"cpu": "4", "memory": str(10 << 30)}

    play(story, most_memory_ratio=1.5)


def test_of_two_configs_for_one_pool_the_loser_says_who_has_it(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config("old", cpu="2")
        await asyncio.sleep(5)
        cluster.config("new", cpu="1.5")
        await cluster.settled()
        assert cluster.cpu("n1") == "6"
        nodes, conditions = cluster.status("old")
        assert nodes == []
        assert conditions.keys() == {"Valid"}
        assert conditions["Valid"][0] == "PoolTaken"
        assert "NodeOvercommitConfig new" in conditions["Valid"][1]
        cluster.config("new", cpu="0")
        await cluster.settled()
        assert cluster.cpu("n1") == "8"

    play(story)


def test_a_pool_that_names_no_node_says_so(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config("none", pool="nobody", cpu="2")
        cluster.config("empty", pool="", cpu="2")
        await cluster.settled()
        assert cluster.status("none")[1]["Advertised"][0] == "NoNodes"
        assert cluster.status("empty")[1]["Valid"][0] == "Refused"
        assert cluster.annotations("n1") == {}

    play(story)


def test_cpus_that_are_bound_are_sold_once(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.says("n1", "9", overcommit_cpu_manager="static", guaranteed_cpus="2")
        cluster.config(cpu="2")
        await cluster.settled()
        assert cluster.cpu("n1") == "6"

    play(story)


def test_a_webhook_that_is_away_costs_nothing_but_the_ratio(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.webhook = False
        cluster.node("n1")
        cluster.config(cpu="2")
        await cluster.settled()
        assert cluster.cpu("n1") == "4"
        assert cluster.decisions[-1].verdict == "waits_for_kubelet"
        wrote = len(cluster.api.writes)
        await cluster.settled()
        assert len(cluster.api.writes) == wrote

    play(story)


def test_a_node_that_refuses_holds_up_no_other(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.node("n2")
        cluster.config(cpu="2")
        patch = cluster.api.patch

        async def refusing(kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Json | None:
            if kind == NODES and document["metadata"]["name"] == "n1":
                raise Unavailable("no")
            return await patch(kind, document, status=status)

        cluster.api.patch = refusing  # type: ignore[method-assign]
        await cluster.settled()
        assert cluster.cpu("n2") == "8"
        assert cluster.controller.state()["not_written"] == {"n1": "no"}

    play(story)


def test_a_webhook_that_goes_away_is_no_reason_to_write_against_kubelet(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config(cpu="2")
        await cluster.settled()
        cluster.webhook = False
        cluster.kubelet("n1")
        for _ in range(3):
            await cluster.controller.reconcile()
            cluster.kubelet("n1")
        assert cluster.cpu("n1") == "4"
        wrote = len(cluster.api.writes)
        await cluster.controller.reconcile()
        assert len(cluster.api.writes) == wrote

    play(story)


def test_kubelets_figures_are_forgotten_last(play: Play) -> None:
    """Without them the next write of kubelet that names no CPU would make an original of the amplified one."""

    async def story(cluster: Cluster) -> None:
        cluster.node("n1")
        cluster.config(cpu="2")
        await cluster.settled()
        cluster.api.drop(OVERCOMMIT_CONFIGS, "c")
        cluster.api.left = 1
        with contextlib.suppress(Unavailable):
            await cluster.controller.reconcile()
        assert cluster.cpu("n1") == "8"
        assert cluster.annotations("n1")["original_capacity_cpu"] == "4"
        assert "cpu_overcommit_ratio" not in cluster.annotations("n1")

    play(story)
