"""Applications of the host as the ConfigMap lists them: told to the nodes' metrics, within bounds."""

import asyncio
import json
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.central.core.slo.host_applications import MOST, follow_applications
from services.central.core.slo.node_strategies import settings_of_said
from services.central.core.slo.settings import APPLICATIONS_NAMED, settings_of_strategy
from services.central.core.slo.strategies import ListedApplication
from services.metrics.core.applications import MOST_PATH_CHARACTERS
from services.metrics.settings import MOST_APPLICATIONS, MetricsSettings
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.readiness import node_config_key
from shared.core.api_kind import CONFIG_MAPS, NODE_SLOS

META = {"name": "slo-controller-config", "namespace": "koordinator-system"}
WORDS = st.text(st.sampled_from("ab./\\-_@: \n\0\u00e9"), max_size=20)


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def settings(*listed: dict[str, Any]) -> Any:
    return settings_of_strategy("host-application-config", {"applications": list(listed)})


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        (
            {"name": "yarn", "priority": "koord-batch", "qos": "BE",
             "cgroupPath": {"base": "KubepodsBesteffort", "parentDir": "hadoop-yarn/", "relativePath": "/nm/"}},
            {"name": "yarn", "priority": "koord-batch", "qos": "BE", "base": "KubepodsBesteffort",
             "path": "hadoop-yarn/nm"},
        ),
        ({"name": "a", "cgroupPath": {"relativePath": "x"}}, {"name": "a", "base": "CgroupRoot", "path": "x"}),
        ({"name": "a", "qos": "LS"}, {"name": "a", "qos": "LS", "base": "CgroupRoot",
                                      "path": "host-latency-sensitive/a"}),
        ({"name": "a", "qos": "LSR"}, {"name": "a", "qos": "LSR", "base": "CgroupRoot",
                                       "path": "host-latency-sensitive/a"}),
        ({"name": "a", "qos": "BE"}, {"name": "a", "qos": "BE", "base": "CgroupRoot", "path": "host-best-effort/a"}),
        ({"name": "a"}, {"name": "a", "base": "CgroupRoot", "path": "a"}),
    ],
)  # fmt: skip
def test_what_a_node_is_told_of_an_application(listed: dict[str, Any], told: dict[str, Any]) -> None:
    found = settings(listed)
    assert found.settings == {"metrics": {"host_applications": [told]}}
    assert found.unfollowed == ()
    (one,) = MetricsSettings.model_validate(found.settings["metrics"]).host_applications
    assert one.model_dump(exclude_none=True) == told


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"name": "x", "cgroupPath": {"relativePath": "../y"}}, "component '..' is not allowed; want names of cgroups"),
        ({"name": "x", "cgroupPath": {"parentDir": "..", "relativePath": "y"}}, "component '..' is not allowed"),
        ({"name": "x", "cgroupPath": {"base": "Kubepods"}}, "want 1 to 256 characters"),
        ({"name": "x", "cgroupPath": {"relativePath": "y" * 200, "parentDir": "z" * 56}}, "want 1 to 256 characters"),
        ({"name": "x", "priority": "koord-gold"}, "priority koord-gold: want koord-prod, koord-mid"),
        ({"name": "good"}, "want a name of its own"),
        ({"name": "x\n"}, "want a name of its own"),
        ({"name": "-x"}, "want a name of its own"),
    ],
)
def test_one_that_no_node_can_measure_is_named_and_the_others_are_told(wrong: dict[str, Any], why: str) -> None:
    found = settings({"name": "good"}, wrong, {"name": "other"})
    told = found.settings["metrics"]["host_applications"]
    assert [one["name"] for one in told] == ["good", "other"]
    (line,) = found.unfollowed
    assert line.startswith(f"host-application-config.applications[{wrong['name']!r}] = not measured: ")
    assert why in line
    assert line.isprintable()


def test_more_than_nodes_take_are_left_out_and_a_few_of_them_named() -> None:
    found = settings(*({"name": f"a{n}"} for n in range(100)))
    assert len(found.settings["metrics"]["host_applications"]) == MOST == MOST_APPLICATIONS
    assert len(found.unfollowed) == APPLICATIONS_NAMED


def test_where_it_lists_none_nothing_is_measured_and_where_it_is_silent_the_settings_hold() -> None:
    assert settings().settings == {"metrics": {"host_applications": []}}
    assert settings_of_strategy("host-application-config", {}).settings == {}
    assert settings_of_strategy("host-application-config", {"applications": None}).settings == {}


@given(WORDS, WORDS, WORDS)
def test_whatever_is_listed_metrics_takes_what_it_is_told(name: str, parent: str, relative: str) -> None:
    listed = {"name": f"n{name}", "cgroupPath": {"parentDir": parent, "relativePath": relative * 10}}
    ListedApplication.model_validate(listed)
    found = follow_applications([listed])
    taken = MetricsSettings.model_validate({"host_applications": found.settings}).host_applications
    assert len(taken) + len(found.refused) == 1
    assert all(len(one.path) <= MOST_PATH_CHARACTERS and ".." not in one.path.split("/") for one in taken)
    assert settings_of_said({"host-application-config": {"applications": found.said}}) == {
        "metrics": {"host_applications": found.settings}
    }


def test_each_node_is_told_its_own(play: Playing) -> None:
    async def told(world: World, node: str) -> list[str]:
        entry = await world.bus.get(CONFIG_BUCKET, node_config_key(node))
        listed = json.loads(present(present(entry).value)).get("metrics", {}).get("host_applications", [])
        return [f"{one['name']} {one['path']}" for one in listed]

    async def story(world: World) -> None:
        world.node("n1", pool="hot")
        world.node("n2")
        world.app = world.central()
        await asyncio.sleep(5)
        hot = {"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}},
               "applications": [{"name": "yarn", "qos": "BE"}]}  # fmt: skip
        text = json.dumps({"applications": [{"name": "nginx", "qos": "LS"}], "nodeConfigs": [hot]})
        world.api.put(CONFIG_MAPS, {"metadata": META, "data": {"host-application-config": text}})
        await asyncio.sleep(3)
        assert await told(world, "n1") == ["yarn host-best-effort/yarn"]
        assert await told(world, "n2") == ["nginx host-latency-sensitive/nginx"]
        spec = world.api.documents[NODE_SLOS, "", "n1"]["spec"]
        assert spec["hostApplications"] == [{"name": "yarn", "qos": "BE"}]

    play(story, kubernetes={"slo": {"enabled": True}})
