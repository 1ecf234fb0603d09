"""Koordinator's ConfigMap in a cluster: it reaches every node, over the file and below config objects."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual
from present import present

from services.central.adapters import node_entries
from services.central.core.config import encode_config
from services.central.core.katalyst.fields import FIELDS, Line
from services.central.core.slo.config_map import KeyConfig, ReadSloConfig, read_slo_config
from services.central.core.slo.keys import SHAPES, SloKey
from services.central.core.slo.node_strategies import SloStrategies, settings_of_said
from services.central.core.slo.overlay import leaves
from services.central.core.slo.settings import FOLLOWED_KEYS, settings_of_strategy
from services.central.core.slo.strategies import ColocationConfig
from services.qrm.settings import QrmSettings
from shared.contracts.bus.subjects import CONFIG_BUCKET, MAX_CONFIG_BYTES
from shared.contracts.readiness import node_config_key
from shared.core.api_kind import CONFIG_MAPS, NODE_SLOS
from shared.errors import BadConfig

FOLLOWED = {"kubernetes": {"slo": {"enabled": True}}}
THRESHOLD: SloKey = "resource-threshold-config"
META = {"name": "slo-controller-config", "namespace": "koordinator-system"}


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def put(world: World, **texts: str) -> None:
    data = {key.replace("_", "-"): text for key, text in texts.items()}
    world.api.put(CONFIG_MAPS, {"metadata": META, "data": data})


def thresholds(world: World, *nodes: dict[str, Any], **cluster: Any) -> None:
    put(world, resource_threshold_config=json.dumps({"clusterStrategy": cluster, "nodeStrategies": list(nodes)}))


def hot(**strategy: Any) -> dict[str, Any]:
    return {"name": "hot", "nodeSelector": {"matchLabels": {"pool": "hot"}}, **strategy}


async def entry(world: World, node: str) -> dict[str, Any]:
    found = await world.bus.get(CONFIG_BUCKET, node_config_key(node))
    document: dict[str, Any] = json.loads(present(found.value)) if found else {}
    return document


async def suppress_percent(world: World, node: str) -> int | None:
    """The threshold of the policy that the ConfigMap chose; None: it chose none."""
    advisor = (await entry(world, node)).get("advisor", {})
    own: dict[str, int] = advisor.get("policies", {}).get(advisor.get("policy"), {})
    return own.get("suppress_threshold_percent")


def slo(world: World) -> Any:
    return world.app.state()["cluster"]["slo"]


async def two_nodes(world: World) -> None:
    world.node("n1", pool="hot")
    world.node("n2")
    world.app = world.central()
    await asyncio.sleep(5)


def test_a_change_reaches_every_node_within_three_seconds_and_each_its_own(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        assert await entry(world, "n1") == {}
        thresholds(world, hot(cpuSuppressThresholdPercent=50), enable=True)
        await asyncio.sleep(3)
        assert [await suppress_percent(world, node) for node in ("n1", "n2")] == [50, 65]
        thresholds(world, hot(cpuSuppressThresholdPercent=40), enable=True)
        await asyncio.sleep(3)
        assert [await suppress_percent(world, node) for node in ("n1", "n2")] == [40, 65]
        assert (await entry(world, "n1"))["slo"] == {THRESHOLD: {"enable": True, "cpuSuppressThresholdPercent": 40}}

    play(story, **FOLLOWED)


def test_switched_off_the_node_has_the_policy_that_the_file_names(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        thresholds(world, enable=True)
        await asyncio.sleep(3)
        assert (await entry(world, "n2"))["advisor"]["policy"] == "koordinator"
        thresholds(world, enable=False)
        await asyncio.sleep(3)
        found = await entry(world, "n2")
        assert "advisor" not in found
        assert found["evictor"]["plugins"]["memory_usage"] == {"enabled": False}
        (line,) = slo(world)["ignored"]
        assert "suppression stays where settings name advisor.policy koordinator" in line
        world.api.drop(CONFIG_MAPS, META["name"], META["namespace"])
        await asyncio.sleep(3)
        assert await entry(world, "n2") == {}

    play(story, **FOLLOWED)


def test_a_key_that_cannot_be_read_keeps_its_last_good_and_says_so(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        thresholds(world, enable=True, cpuSuppressThresholdPercent=55)
        await asyncio.sleep(3)
        put(world, resource_threshold_config="{", colocation_config='{"enable": true}')
        await asyncio.sleep(3)
        assert await suppress_percent(world, "n2") == 55
        assert (await entry(world, "n2"))["reporter"]["batch"]["enabled"] is True
        (said,) = slo(world)["refused"].values()
        assert THRESHOLD in said
        assert "the last good one holds" in said
        assert world.app.state()["cluster"]["config_refused"] == slo(world)["refused"]
        assert world.app.health().ok

    play(story, **FOLLOWED)


def test_a_new_leader_over_a_bad_config_map_leaves_the_nodes_what_they_have(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        thresholds(world, enable=True, cpuSuppressThresholdPercent=55)
        await asyncio.sleep(3)
        world.app.task.cancel()
        put(world, resource_threshold_config="{", colocation_config='{"enable": true}')
        world.app = world.central()
        await asyncio.sleep(30)
        assert world.app.cluster.leading
        assert await suppress_percent(world, "n2") == 55
        assert (await entry(world, "n2"))["reporter"]["batch"]["enabled"] is True
        thresholds(world, enable=True, cpuSuppressThresholdPercent=45)
        await asyncio.sleep(3)
        assert await suppress_percent(world, "n2") == 45

    play(story, **FOLLOWED)


def test_an_entry_of_some_nodes_that_cannot_be_used_leaves_them_the_clusters(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        thresholds(world, hot(cpuSuppressThresholdPercent=500), enable=True, cpuSuppressThresholdPercent=60)
        await asyncio.sleep(3)
        assert [await suppress_percent(world, node) for node in ("n1", "n2")] == [60, 60]
        assert "= 500: want at most 100" in "".join(slo(world)["refused"].values())

    play(story, **FOLLOWED)


def test_config_objects_stand_beside_it(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        world.kcc()
        world.threshold(5)
        thresholds(world, enable=True)
        await asyncio.sleep(3)
        plugins = (await entry(world, "n1"))["evictor"]["plugins"]
        assert plugins["memory_usage"]["threshold_percent"] == 70
        assert await world.settings_of("n1") == 5
        world.api.drop(CONFIG_MAPS, META["name"], META["namespace"])
        await asyncio.sleep(3)
        assert "slo" not in await entry(world, "n1")
        assert await world.settings_of("n1") == 5

    play(story, **FOLLOWED)


def switched(strategy: Any, *, on: bool) -> Any:
    """A strategy with every switch in it on, or off."""
    if not isinstance(strategy, Mapping):
        return strategy
    return {name: on if name == "enable" else switched(value, on=on) for name, value in strategy.items()}


def quality(**classes: Any) -> dict[str, Any]:
    disks = [{"name": f"/dev/disk/by-id/{n:0100}", "type": "device", "ioCfg": {"readIOPS": n}} for n in range(450)]
    return {name: {"blkioQOS": {"enable": True, "blocks": disks}, "of-tomorrow": "x" * 70_000, **parts}
            for name, parts in classes.items()}  # fmt: skip


def test_what_no_setting_follows_however_large_stands_in_no_entry_and_holds_up_nobody(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        classes = quality(beClass={"memoryQOS": {"enable": True, "wmarkRatio": 90}, "networkQOS": {"enable": True}})
        document = json.dumps({"clusterStrategy": classes})
        assert len(document) > MAX_CONFIG_BYTES
        put(world, resource_qos_config=document)
        await asyncio.sleep(3)
        found = await entry(world, "n1")
        assert found["slo"] == {"resource-qos-config": {"beClass": {"memoryQOS": {"enable": True, "wmarkRatio": 90}}}}
        assert found["qrm"]["memory_qos"]["reclaimed_cores"]["wmark_ratio"] == 90
        spec = world.api.documents[NODE_SLOS, "", "n1"]["spec"]
        assert len(spec["resourceQOSStrategy"]["beClass"]["blkioQOS"]["blocks"]) == 450
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        assert await world.settings_of("n1") == 5
        assert world.app.state()["cluster"]["failure"] == ""

    play(story, **FOLLOWED)


def test_no_more_disks_are_followed_than_the_setting_takes() -> None:
    blocks = [{"name": f"/dev/sd{n}", "type": "device", "ioCfg": {"readIOPS": n}} for n in range(20)]
    strategy = {"beClass": {"blkioQOS": {"enable": True, "blocks": blocks}}}
    found = settings_of_strategy("resource-qos-config", strategy)
    assert len(QrmSettings.model_validate(found.settings["qrm"]).block_io.rules()) == 16
    assert "blocks = 4 of 20" in found.unfollowed[0]


def test_more_operations_than_kernels_count_are_named_and_the_rest_of_the_disk_followed() -> None:
    limits = {"readBPS": 5, "readIOPS": (1 << 32) + 100, "writeIOPS": (1 << 32) - 2}
    blocks = [{"name": "/dev/sda", "type": "device", "ioCfg": limits}]
    strategy = {"beClass": {"blkioQOS": {"enable": True, "blocks": blocks}}}
    found = settings_of_strategy("resource-qos-config", strategy)
    (disk,) = QrmSettings.model_validate(found.settings["qrm"]).block_io.rules()
    assert (disk.read_bps, disk.read_iops, disk.write_iops) == (5, 0, (1 << 32) - 2)
    (line,) = found.unfollowed
    assert "readIOPS = 4294967396: want less than 4294967295" in line
    assert "/dev/sda" in line


def test_disks_of_batch_pods_are_followed_by_their_device_and_switched_off_again(play: Playing) -> None:
    def blocks(*names: str, kind: str = "device") -> list[dict[str, Any]]:
        limits = {"readBPS": 5, "writeIOPS": 7, "ioWeightPercent": 40, "readLatency": 3000}
        return [{"name": name, "type": kind, "ioCfg": limits} for name in names]

    def block_io(*, enable: bool, disks: list[dict[str, Any]]) -> str:
        other = {"blkioQOS": {"enable": True, "blocks": blocks("/dev/sda")}}
        own = {"blkioQOS": {"enable": enable, "blocks": disks}}
        return json.dumps({"clusterStrategy": {"beClass": own, "lsClass": other, "cgroupRoot": other}})

    async def story(world: World) -> None:
        await two_nodes(world)
        disks = [
            *blocks("/dev/sda", "/dev/nvme0n1", "/dev/sda", "sdb", "/dev/mapper/x"),
            *blocks("vg", kind="volumegroup"),
        ]
        put(world, resource_qos_config=block_io(enable=True, disks=disks))
        await asyncio.sleep(3)
        found = await entry(world, "n1")
        limits = {"read_bps": 5, "write_iops": 7, "weight_percent": 40}
        wanted = {"enabled": True, "reclaimed_cores": [{"device": name, **limits} for name in ("sda", "nvme0n1")]}
        assert found["qrm"]["block_io"] == wanted
        assert QrmSettings.model_validate(found["qrm"]).block_io.rules()[1].device == "nvme0n1"
        kept = found["slo"]["resource-qos-config"]
        assert [block["name"] for block in kept["beClass"]["blkioQOS"]["blocks"]] == ["/dev/sda", "/dev/nvme0n1"]
        assert "blkioQOS" not in str({name: part for name, part in kept.items() if name != "beClass"})
        assert any("blocks = 4 of 6" in line for line in world.app.state()["cluster"]["slo"]["ignored"])
        put(world, resource_qos_config=block_io(enable=False, disks=disks))
        await asyncio.sleep(3)
        assert (await entry(world, "n1"))["qrm"]["block_io"] == {"enabled": False}

    play(story, **FOLLOWED)


def test_a_node_whose_entry_is_refused_keeps_what_it_has_and_holds_up_nobody(
    play: Playing, monkeypatch: pytest.MonkeyPatch
) -> None:

    def picky(document: Mapping[str, Any]) -> bytes:
        if "50" in json.dumps(document.get("slo", {})):
            raise BadConfig("configuration: too large")
        return encode_config(document)

    monkeypatch.setattr(node_entries, "encode_config", picky)

    async def story(world: World) -> None:
        await two_nodes(world)
        world.kcc()
        world.threshold(5)
        thresholds(world, hot(cpuSuppressThresholdPercent=50), enable=True)
        await asyncio.sleep(5)
        assert [await suppress_percent(world, node) for node in ("n1", "n2")] == [None, 65]
        assert [len(world.cnc(node)) for node in ("n1", "n2")] == [0, 1]
        assert world.valid()[0] == "True"
        state = world.app.state()["cluster"]
        assert (state["failure"], state["nodes_not_written"]) == ("", {"n1": "configuration: too large"})
        thresholds(world, enable=True)
        await asyncio.sleep(5)
        assert len(world.cnc("n1")) == 1
        assert world.app.state()["cluster"]["nodes_not_written"] == {}

    play(story, **FOLLOWED)


def largest() -> dict[SloKey, dict[str, Any]]:
    """As much as a valid ConfigMap can say in fields that are followed."""
    words = {"midReclaimMode": "\U0001f600" * 253, "metricMemoryCollectPolicy": "\U0001f600" * 253}
    numbers = {field.alias or name: (1 << 63) - 1 for name, field in ColocationConfig.model_fields.items()
               if "minutes" in name or "reclaim_threshold" in name}  # fmt: skip
    windows = {"metricAggregatePolicy": {"durations": ["1\u00b5s" * 10 + "1h"] * 100}}
    parts = SHAPES["resource-qos-config"].built_in["beClass"]
    classes = dict.fromkeys(("lsrClass", "lsClass", "beClass", "systemClass", "cgroupRoot"), parts)
    found: dict[SloKey, dict[str, Any]] = {key: dict(SHAPES[key].built_in) for key in FOLLOWED_KEYS}
    path = {"parentDir": "/" * 2000 + "p" * 128, "relativePath": "/" * 2000 + "r" * 127}
    found["host-application-config"]["applications"] = [
        {"name": f"{'n' * 61}{n:02}", "priority": "koord-batch", "qos": "SYSTEM",
         "cgroupPath": {"base": "KubepodsBesteffort", **path}, "of-tomorrow": "x" * 1000}
        for n in range(40)
    ]  # fmt: skip
    found["colocation-config"] |= words | numbers | windows
    found["resource-qos-config"] = switched(classes, on=True)
    return found


def test_the_largest_that_is_followed_fits_an_entry() -> None:
    said = largest()
    read = read_slo_config({key: json.dumps(one if SHAPES[key].inline else {"clusterStrategy": one})
                            for key, one in said.items()})  # fmt: skip
    assert read.problems == ()
    node = SloStrategies(read).of({})
    assert len(encode_config({**(node.settings or {}), "slo": node.followed})) < MAX_CONFIG_BYTES // 2


def test_what_an_entry_leaves_out_changes_no_setting() -> None:
    for key in FOLLOWED_KEYS:
        for on in (True, False):
            strategy = switched({**SHAPES[key].built_in, "of-tomorrow": 1}, on=on)
            node = SloStrategies(ReadSloConfig({key: KeyConfig(strategy)})).of({})
            assert "of-tomorrow" not in node.followed[key]
            assert settings_of_said(node.followed) == node.settings == settings_of_said({key: strategy})


def test_no_setting_has_two_owners() -> None:
    """What a config object may set the ConfigMap does not: so the order in which they are laid is nobody's surprise."""
    more: dict[SloKey, dict[str, Any]] = {
        THRESHOLD: {"cpuEvictPolicy": "evictByRealLimit", "cpuEvictTimeWindowSeconds": 60,
                    "cpuEvictBESatisfactionLowerPercent": 20, "cpuEvictBESatisfactionUpperPercent": 30,
                    "memoryAllocatableEvictThresholdPercent": 120, "allocatableEvictPriorityThreshold": 5999},
        "cpu-burst-config": {"policy": "auto"},
    }  # fmt: skip
    said = set()
    for key in FOLLOWED_KEYS:
        strategy = {**SHAPES[key].built_in, **more.get(key, {})}
        for on in (True, False):
            found = {path for path, _ in leaves(settings_of_said({key: switched(strategy, on=on)}))}
            assert found or not on, key
            said |= found
    objects = {".".join(place) for field in FIELDS.values() for place in
               ((field.amount, field.ratio) if isinstance(field, Line) else field.to)}  # fmt: skip
    assert objects
    assert sorted(said & objects) == []


def test_it_is_not_followed_unless_somebody_says_so(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        thresholds(world, enable=True)
        await asyncio.sleep(60)
        assert await entry(world, "n1") == {}
        assert "slo" not in world.app.state()["cluster"]

    play(story)


def test_a_config_map_of_another_name_or_namespace_is_none_of_its_business(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        data = {THRESHOLD: '{"clusterStrategy": {"enable": true}}'}
        world.api.put(CONFIG_MAPS, {"metadata": {**META, "name": "other"}, "data": data})
        world.api.put(CONFIG_MAPS, {"metadata": {**META, "namespace": "default"}, "data": data})
        await asyncio.sleep(5)
        assert await entry(world, "n1") == {}

    play(story, **FOLLOWED)


def test_nothing_is_written_while_nothing_changes(play: Playing) -> None:
    async def story(world: World) -> None:
        await two_nodes(world)
        thresholds(world, enable=True)
        await asyncio.sleep(60)
        found = present(await world.bus.get(CONFIG_BUCKET, node_config_key("n1")))
        world.api.put(CONFIG_MAPS, {"metadata": {**META, "labels": {"x": "y"}}, "data": world.api.documents[
            CONFIG_MAPS, META["namespace"], META["name"]]["data"]})  # fmt: skip
        await asyncio.sleep(60)
        assert present(await world.bus.get(CONFIG_BUCKET, node_config_key("n1"))).revision == found.revision

    play(story, **FOLLOWED)
