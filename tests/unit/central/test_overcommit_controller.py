"""Over-committed nodes over time: a config, Nodes, a kubelet that writes through the webhook, and deaths in between."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from fixture_types import Virtual
from overcommit_cluster import Cluster, Json

from services.central.core.overcommit.config_documents import OVERCOMMIT_CONFIGS
from shared.contracts.kube.node_conditions import WITHDRAWN
from shared.core.api_kind import NODES, ApiKind
from shared.errors import Unavailable


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
        decided = cluster.decisions.of_configs["c"]
        assert (decided.verdict, decided.message) == ("all_as_set", "all of 1 nodes show what was set")
        assert decided.why[0].numbers == {"pool": "p", "ruler": "c", "nodes": 1, "cpu": "1.5"}
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
        said = cluster.decisions.of_configs["c"]
        assert (said.verdict, said.message) == ("refused", conditions["Valid"][1])

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
        said = cluster.decisions.of_configs["old"]
        assert (said.verdict, said.why[0].numbers["ruler"]) == ("pool_taken", "new")
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
        assert cluster.decisions.of_configs["none"].verdict == "no_nodes"
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


def test_what_was_decided_is_said_again_a_few_nodes_after_the_other(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        for number in range(130):
            cluster.node(f"n{number:03}")
        cluster.config(cpu="2")
        await cluster.settled()
        heard = []
        for _ in range(3):
            cluster.decisions.clear()
            await asyncio.sleep(31)
            await cluster.controller.reconcile()
            heard.append({one.about.name for one in cluster.decisions})
        assert [len(names) for names in heard] in ([100, 30, 100], [30, 100, 30])
        assert len(heard[0] | heard[1]) == 130

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
