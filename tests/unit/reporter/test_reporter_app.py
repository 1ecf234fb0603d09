"""The reporter on a bus in memory and in virtual time."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from reporter_node import Node, Play, player

from shared.adapters.files.node import NodeFile
from shared.build import BUILD
from shared.contracts.allocation import Allocation
from shared.contracts.bus.subjects import state_subject
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeReading, NodeSample, NumaReading, PodReading
from shared.contracts.services import NODE_SERVICES
from shared.errors import BadConfig, Unavailable
from shared.wire import Wire


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story in virtual time."""
    return player(virtual)


def test_a_new_allocation_is_written_at_once(play: Play) -> None:
    async def story(node: Node) -> None:
        for millis in (44_000, 42_000, 40_000):
            await node.offer(millis)

    assert play(story).writer.offers == ["44k", "42k", "40k"]


def test_a_write_under_way_tells_what_is_applied_meanwhile_and_is_not_made_twice(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(44_000)
        node.writer.takes_s = 2.0
        await node.offer(42_000)
        await node.offer(40_000)
        await asyncio.sleep(10)

    assert play(story).writer.offers == ["44k", "40k"]


def test_the_same_allocation_again_writes_nothing(play: Play) -> None:
    async def story(node: Node) -> None:
        for _ in range(100):
            await node.offer(44_000)
            await asyncio.sleep(10)

    written = play(story).writer.offers
    # The first one, and one refresh because the services were found silent meanwhile.
    assert set(written) == {"44k"}
    assert len(written) <= 2


def test_a_small_rise_is_written_with_the_refresh_and_a_small_fall_at_once(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(40_000)
        await node.offer(40_200)
        await asyncio.sleep(30)
        assert node.writer.offers == ["40k"]
        await asyncio.sleep(31)
        assert node.writer.offers == ["40k", "40200"]
        await node.offer(40_199)

    assert play(story).writer.offers == ["40k", "40200", "40199"]


def test_a_rise_is_told_by_and_by_and_a_fall_at_once(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(44_000)
        await node.offer(4_000)
        for _ in range(5):
            await node.offer(44_000)
            await asyncio.sleep(5)
        assert node.writer.offers == ["44k", "4k", "20k", "30666", "44k"]
        capacities = [d["status"]["resourceCapacity"]["katalyst.kubewharf.io/reclaimed_millicpu"]
                      for d in node.writer.documents]  # fmt: skip
        assert capacities == ["44k", "4k", "44k", "44k", "44k"]
        await node.offer(10_000)

    assert play(story).writer.offers[-1] == "10k"


def test_the_floor_at_the_start_is_no_amount_to_rise_from(play: Play) -> None:
    async def story(node: Node) -> None:
        for millis, status in ((0, "floor"), (4_000, "floor"), (44_000, "applied"), (4_000, "floor"), (44_000, "held")):
            await node.offer(millis, status=status)

    assert play(story).writer.offers == ["0", "4k", "44k", "4k", "4k"]


def test_one_step_of_the_tenants_pool_is_told_whole_within_the_window(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(42_000)
        for _ in range(20):
            await node.offer(44_000)
            await asyncio.sleep(1)

    assert play(story).writer.offers == ["42k", "42666", "43333", "44k"]


def test_on_an_old_allocation_nothing_rises(play: Play) -> None:
    async def story(node: Node) -> None:
        node.app.reconfigure({"rise_sample_s": 20, "rise_window_s": 20})
        await node.offer(4_000)
        await node.offer(44_000)
        await asyncio.sleep(200)
        assert node.app.state()["offered"] == {"cpu_millis": 20_000, "memory_bytes": 195_257_901_056}

    play(story)


def test_a_stale_allocation_keeps_the_offer_and_marks_the_condition(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(44_000)
        await asyncio.sleep(32)
        assert not node.app.health().ok

    node = play(story)
    assert node.writer.offers == ["44k", "44k"]
    rows = {row["type"]: row for row in node.writer.documents[-1]["status"]["conditions"]}
    assert (rows["AllocationFresh"]["status"], rows["AllocationFresh"]["reason"]) == ("False", "Stale")


def test_a_fresh_start_leaves_the_former_object_alone_until_qrm_must_be_believed_dead(play: Play) -> None:
    async def story(node: Node) -> None:
        await asyncio.sleep(29)
        assert node.writer.documents == []
        await asyncio.sleep(3)

    (document,) = play(story).writer.documents
    assert "resourceAllocatable" not in document["status"]


def test_readiness_is_said_every_ten_seconds_and_at_once_on_change(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.beat()
        await asyncio.sleep(1.1)
        node.beats.clear()
        for _ in range(15):
            await node.beat()
            await asyncio.sleep(2)
        assert [b.ready for b in node.beats] == [True, True, True]
        node.beats.clear()
        await node.beat("qrm", ok=False)
        await asyncio.sleep(1.1)

    (told,) = play(story).beats
    assert not told.ready
    assert [h.service for h in told.services if not h.ok] == ["qrm"]


def test_a_silent_service_makes_the_node_not_ready_and_is_named(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.beat()
        await asyncio.sleep(8)
        assert node.beats[-1].ready
        await node.beat("metrics", "advisor", "evictor", "reporter")
        await asyncio.sleep(3)

    told = play(story).beats[-1]
    assert [(h.service, h.why) for h in told.services if not h.ok] == [("qrm", "silent for more than 10 s")]
    assert [h.service for h in told.services] == list(NODE_SERVICES)


def test_readiness_that_could_not_be_sent_is_sent_when_the_bus_is_back(play: Play) -> None:
    async def story(node: Node) -> None:
        await asyncio.sleep(1)
        node.beats.clear()
        node.bus.go_offline()
        await asyncio.sleep(20)
        assert node.beats == []
        node.bus.go_online()
        await asyncio.sleep(1.1)

    assert len(play(story).beats) == 1


def test_a_write_that_fails_is_tried_again_and_told(play: Play) -> None:
    async def story(node: Node) -> None:
        node.writer.failing = True
        await node.offer(44_000)
        await asyncio.sleep(2)
        assert node.app.health().why == "disk is full"
        node.writer.failing = False
        await asyncio.sleep(1.1)
        assert node.app.health().ok

    assert play(story).writer.offers == ["44k"]


def test_a_foreign_allocation_changes_nothing(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(44_000)
        stranger = Wire(node.bus, node.clock, node="node2", service="qrm")
        message = stranger.stamp(Allocation, status="applied", reclaimed_cpu_millis=99_000)
        await node.bus.publish(state_subject(Allocation, "node1"), message.encode())
        await asyncio.sleep(2)

    assert play(story).writer.offers == ["44k"]


def test_the_object_says_what_runs_here(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.offer(44_000)
        rows = node.writer.documents[-1]["spec"]["nodeResourceProperties"]
        assert {"propertyName": "agent_version", "propertyValues": [BUILD.version]} in rows

    play(story)


def test_state_holds_the_object_as_written_and_is_json(play: Play) -> None:
    async def story(node: Node) -> None:
        assert json.dumps(node.app.state())
        await node.offer(44_000)
        state = json.loads(json.dumps(node.app.state()))
        assert state["cnr"] == node.writer.documents[-1]
        assert state["allocation"] == "alloc/1"

    play(story)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        pytest.param({"ready": 3}, "did you mean 'ready_s'", id="unknown key"),
        pytest.param({"ready_s": -1}, "want more than 0", id="out of bounds"),
        pytest.param({"fields": {"reclaimd": {}}}, "did you mean 'reclaimed'", id="unknown field"),
        pytest.param({"fields": {"reclaimed": {"min_rise": 1}}}, "min_rise_cpu_millis", id="unknown key of a field"),
    ],
)
def test_bad_settings_are_refused_and_the_last_good_ones_stay(play: Play, section: dict[str, Any], words: str) -> None:
    async def story(node: Node) -> None:
        at_once = {"rise_sample_s": 0.001, "rise_window_s": 0.001}
        node.app.reconfigure({**at_once, "fields": {"reclaimed": {"min_rise_cpu_millis": 0}}})
        with pytest.raises(BadConfig, match=words):
            node.app.reconfigure(section)
        await node.offer(40_000)
        await node.offer(40_001)

    assert play(story).writer.offers == ["40k", "40001"]


async def test_the_file_is_replaced_whole_and_is_for_its_owner_and_group_alone(tmp_path: Path) -> None:
    path = tmp_path / "state/cnr.json"
    file = NodeFile(path)
    await file.write({"a": 1})
    await file.write({"b": 2})
    assert json.loads(path.read_text()) == {"b": 2}
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in path.parent.iterdir()] == ["cnr.json"]


async def test_a_file_that_cannot_be_written_says_where_and_keeps_the_last_object(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(Unavailable, match=r"state/cnr\.json"):
        await NodeFile(tmp_path / "state/cnr.json").write({})


def test_batch_resources_end_by_the_time_alone(play: Play) -> None:
    async def story(node: Node) -> None:
        node.app.reconfigure({"batch": {"enabled": True, "degrade_after_s": 30}})
        wire = node.wires["metrics"]
        used = {"cpu_usage_cores": 3.0, "memory_total_bytes": 10 << 30, "memory_available_bytes": 7 << 30}
        reading = NodeReading.model_validate({"online_cpus": "0-9", **used})
        await wire.publish(wire.stamp(NodeSample, node_reading=reading))
        await node.offer(44_000)
        await asyncio.sleep(29)
        terms = node.app.state()["batch"]
        assert (terms["cpu_millis"], terms["cpu"]["system"]) == (3000, 3000)
        await asyncio.sleep(10)
        assert node.app.state()["batch"] is None

    written = [document["status"]["resources"]["allocatable"] for document in play(story).writer.documents]
    assert [amounts.get("kubernetes.io/batch-cpu") for amounts in written] == ["3k", None]
    assert [amounts.get("koordinator.sh/batch-cpu") for amounts in written] == ["3k", None]


def test_a_node_that_observes_leaves_koordinators_amounts_to_whoever_writes_them(play: Play) -> None:
    async def story(node: Node) -> None:
        node.context.switch.mode, wire = "observe", node.wires["metrics"]
        mid = {"enabled": True, "mode": "static", "static_cpu_percent": 50}
        node.app.reconfigure({"mid": mid, "batch": {"enabled": True, "by_numa": True}})
        memory = {"memory_total_bytes": 10 << 30, "memory_available_bytes": 9 << 30}
        reading = NodeReading.model_validate({"online_cpus": "0-9", "cpu_usage_cores": 1.0, **memory})
        free = {"memory_free_bytes": 9 << 30, "active_file_bytes": 0, "slab_reclaimable_bytes": 0}
        numa = NumaReading(numa=0, memory_total_bytes=10 << 30, inactive_file_bytes=0, **free)
        await wire.publish(wire.stamp(NodeSample, node_reading=reading, numas=(numa,)))
        await node.offer(0)
        await asyncio.sleep(2)
        node.context.switch.mode = "enforce"
        await node.offer(6_000)

    first, *_, last = (document["status"] for document in play(story).writer.documents)
    assert not re.search("mid-|batch-", json.dumps(first))
    assert "batch-memory" in json.dumps(last["topologyZone"])
    assert {name.partition("/")[2] for name in last["resources"]["allocatable"]} >= {
        "batch-cpu",
        "batch-memory",
        "mid-cpu",
        "mid-memory",
    }


def test_mid_resources_end_by_the_time_alone_and_what_they_sold_is_offered_to_nobody_else(play: Play) -> None:
    async def story(node: Node) -> None:
        mid = {"enabled": True, "mode": "static", "static_cpu_percent": 50, "degrade_after_s": 30}
        node.app.reconfigure({"mid": mid, "batch": {"enabled": True, "degrade_after_s": 30}})
        wire = node.wires["metrics"]
        used = {"cpu_usage_cores": 1.0, "memory_total_bytes": 10 << 30, "memory_available_bytes": 9 << 30}
        reading = NodeReading.model_validate({"online_cpus": "0-9", **used})
        containers = (Container(name="c", cpu_request_millis=4000),)
        pod = PodReading(pod=Pod(uid="aa", name="mid", priority=7500, containers=containers))
        await wire.publish(wire.stamp(NodeSample, node_reading=reading, pods=(pod,)))
        await node.offer(6_000)
        await asyncio.sleep(40)
        assert node.app.state()["mid"] is None

    first, *_, last = (document["status"]["resources"]["allocatable"] for document in play(story).writer.documents)
    assert {name: amount for name, amount in first.items() if name.endswith("cpu")} == {
        "katalyst.kubewharf.io/reclaimed_millicpu": "2k",
        "resource.katalyst.kubewharf.io/reclaimed_millicpu": "2k",
        "kubernetes.io/batch-cpu": "1k",
        "koordinator.sh/batch-cpu": "1k",
        "kubernetes.io/mid-cpu": "5k",
    }
    assert not any("mid-" in name or "batch-" in name for name in last)
