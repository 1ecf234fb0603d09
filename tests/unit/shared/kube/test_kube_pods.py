"""The pods of this node beside the reporter: mirrored, kept in the file, counted by name; trouble is waited out."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from kube_api import Api, FakeKube, pod_path

from shared.adapters.clock import LoopClock
from shared.adapters.files.pods import PodsFile
from shared.adapters.kube.node import KubeNode
from shared.adapters.kube.pods import COLLECT_S, SHOW_GAP_S, SHOW_S, KubePods
from shared.contracts.pod import BATCH_CPU, RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU
from shared.core.cpus.normalization import NORMALIZATION_RATIO
from shared.core.pods.qos import Fallback
from shared.errors import Unavailable

NODE = "/api/v1/nodes/n1"
BATCH = {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}
OFFER = {"apiVersion": "v", "kind": "CustomNodeResource", "metadata": {"name": "n1"},
         "status": {"resourceAllocatable": {TUTORIAL_RECLAIMED_CPU: "44k"}}}  # fmt: skip


class World:
    """A node's pods at work."""

    def __init__(self, state_dir: Path, fallback: Fallback = "shared_cores") -> None:
        self.api, self.file = Api(), PodsFile(state_dir)
        self.make_node()
        kube = FakeKube(self.api)
        self.pods = KubePods(kube, "n1", self.file, LoopClock(), fallback=fallback)
        self.node = KubeNode(kube, "n1", self.pods.asked)

    def make_node(self) -> None:
        self.api.put(NODE, {"spec": {}, "status": {}})

    def run_batch(self, name: str, amount: str = "2k", node: str = "n1", **parts: Any) -> None:
        spec = {"containers": [{"name": "main", "resources": {"requests": {TUTORIAL_RECLAIMED_CPU: amount}}}]}
        self.api.run_pod(
            name, name.encode().hex(), metadata={"annotations": BATCH}, spec={"nodeName": node, **spec}, **parts
        )

    @property
    def kept(self) -> list[str]:
        return [pod.name for pod in self.file.pods()]

    @property
    def shown(self) -> dict[str, str]:
        amounts: dict[str, str] = self.api.objects[NODE]["status"].get("allocatable", {})
        return amounts

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.pods.run(self.node))
        try:
            await asyncio.sleep(0.5)
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


Scene = Callable[..., None]
"""Tells a story of a node in virtual time; keywords are options of its world."""


@pytest.fixture
def scene(virtual: Virtual, tmp_path: Path) -> Scene:
    """Tell a story of a node in virtual time."""

    def play(story: Callable[[World], Awaitable[None]], **options: Any) -> None:
        async def whole() -> None:
            await story(World(tmp_path / "state", **options))

        virtual(whole())

    return play


def test_before_the_first_list_nothing_is_written_and_it_is_said_why(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.run_batch("encode")
        world.api.away = True
        async with world.at_work():
            with pytest.raises(Unavailable, match="not written yet"):
                world.file.pods()
            assert "no answer" in world.pods.failure()
            assert world.pods.asked() == dict.fromkeys(world.pods.asked(), 0)
            world.api.away = False
            await asyncio.sleep(30)
            assert (world.kept, world.pods.failure()) == (["encode"], "")

    scene(story)


def test_only_this_nodes_pods_are_kept_and_each_change_reaches_the_file(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.run_batch("encode")
        world.run_batch("elsewhere", node="n2")
        async with world.at_work():
            assert world.kept == ["encode"]
            world.run_batch("second")
            await asyncio.sleep(0.1)
            assert world.kept == ["encode", "second"]
            world.api.remove(pod_path("encode"))
            await asyncio.sleep(0.1)
            assert world.kept == ["second"]

    scene(story)


def test_what_pods_ask_for_is_counted_and_shown_on_the_node_at_once(scene: Scene) -> None:
    async def story(world: World) -> None:
        async with world.at_work():
            await world.node.write(OFFER)
            assert world.shown[RECLAIMED_CPU] == "44k"
            world.run_batch("encode", "4k")
            await asyncio.sleep(0.1)
            assert (world.shown[RECLAIMED_CPU], world.shown[TUTORIAL_RECLAIMED_CPU]) == ("40k", "44k")
            world.run_batch("encode", "4k", status={"phase": "Succeeded"})
            await asyncio.sleep(0.1)
            assert (world.shown[RECLAIMED_CPU], world.kept) == ("40k", [])
            await asyncio.sleep(SHOW_GAP_S)
            assert world.shown[RECLAIMED_CPU] == "44k"

    scene(story)


def test_patches_of_a_pod_are_collected_and_a_new_pod_is_told_at_once(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.run_batch("encode")
        async with world.at_work():
            lists = set()
            for number in range(250):
                patched = world.api.objects[pod_path("encode")]
                patched["metadata"] = {**patched["metadata"], "labels": {"turn": str(number)}}
                world.api.put(pod_path("encode"), dict(patched))
                await asyncio.sleep(0.02)
                lists.add(world.file.generation())
            assert 8 <= len(lists) <= 5 / COLLECT_S + 2
            world.run_batch("second")
            await asyncio.sleep(0.1)
            assert world.kept == ["encode", "second"]

    scene(story)


def test_pods_that_come_and_go_write_the_node_every_two_seconds_at_most(scene: Scene) -> None:
    async def story(world: World) -> None:
        async with world.at_work():
            await world.node.write(OFFER)
            await asyncio.sleep(SHOW_GAP_S)
            world.api.requests.clear()
            for number in range(100):
                world.run_batch("encode", f"{number % 9 + 1}k")
                await asyncio.sleep(0.1)
            writes = [
                request for request in world.api.requests if "PATCH" in str(request) and "nodes/n1" in str(request)
            ]
            assert 3 <= len(writes) <= 10 / SHOW_GAP_S + 1
            await asyncio.sleep(SHOW_GAP_S)
            assert world.shown[RECLAIMED_CPU] == "43k"

    scene(story)


def test_a_change_that_nobody_asked_for_writes_nothing(scene: Scene) -> None:
    async def story(world: World) -> None:
        async with world.at_work():
            world.run_batch("encode")
            await asyncio.sleep(0.1)
            written = world.file.generation()
            world.api.requests.clear()
            same = world.api.objects[pod_path("encode")]
            world.api.put(pod_path("encode"), {**same, "status": {**same["status"], "podIP": "::1"}})
            await asyncio.sleep(5)
            assert (world.file.generation(), world.api.requests) == (written, [])

    scene(story)


def test_a_node_made_anew_gets_its_amounts_again(scene: Scene) -> None:
    async def story(world: World) -> None:
        async with world.at_work():
            await world.node.write(OFFER)
            world.make_node()
            assert world.shown == {}
            await asyncio.sleep(SHOW_S + 1)
            assert world.shown[RECLAIMED_CPU] == "44k"

    scene(story)


def test_while_the_node_cannot_be_written_the_file_still_follows_and_it_is_tried_again(scene: Scene) -> None:
    async def story(world: World) -> None:
        async with world.at_work():
            await world.node.write(OFFER)
            world.api.refuse["PATCH", f"{NODE}/status"] = 500
            world.run_batch("encode", "4k")
            await asyncio.sleep(3)
            assert (world.kept, "the test says so" in world.pods.failure()) == (["encode"], True)
            world.api.refuse.clear()
            await asyncio.sleep(3)
            assert (world.shown[RECLAIMED_CPU], world.pods.failure()) == ("40k", "")

    scene(story)


def test_a_file_that_cannot_be_written_is_told_and_tried_again(scene: Scene, tmp_path: Path) -> None:
    async def story(world: World) -> None:
        (tmp_path / "state").write_text("no folder")
        world.run_batch("encode")
        async with world.at_work():
            assert "cannot be written" in world.pods.failure()
            (tmp_path / "state").unlink()
            await asyncio.sleep(3)
            assert (world.kept, world.pods.failure()) == (["encode"], "")

    scene(story)


@pytest.mark.parametrize(("fallback", "qos"), [("shared_cores", "shared_cores"), ("kubernetes", "reclaimed_cores")])
def test_a_best_effort_pod_without_a_class_is_what_the_setting_says(scene: Scene, fallback: Fallback, qos: str) -> None:
    async def story(world: World) -> None:
        world.api.run_pod("plain", "aa", status={"qosClass": "BestEffort"})
        async with world.at_work():
            assert [pod.qos for pod in world.file.pods()] == [qos]

    scene(story, fallback=fallback)


def written(pods: PodsFile) -> dict[str, str]:
    return {pod.name: pod.qos for pod in pods.pods()}


@pytest.mark.parametrize("restart", [False, True])
def test_the_class_of_a_pod_stays_whatever_is_written_onto_it_also_over_a_restart(scene: Scene, restart: bool) -> None:
    async def story(world: World) -> None:
        spec = {"nodeName": "n1", "containers": [{"name": "main"}]}
        world.api.run_pod("batch", "b0", metadata={"annotations": BATCH}, spec=spec)
        world.api.run_pod("web", "b1", spec=spec)
        async with world.at_work():
            assert written(world.file) == {"batch": "reclaimed_cores", "web": "shared_cores"}
            if not restart:
                relabel(world, spec)
                await asyncio.sleep(0.1)
                assert written(world.file) == {"batch": "reclaimed_cores", "web": "shared_cores"}
        relabel(world, spec)
        after = KubePods(
            FakeKube(world.api), "n1", PodsFile(world.file.path.parent), LoopClock(), fallback="kubernetes"
        )
        world.pods = after
        async with world.at_work():
            world.api.run_pod("late", "b2", spec=spec)
            await asyncio.sleep(0.1)
            assert written(world.file) == {"batch": "reclaimed_cores", "late": "reclaimed_cores", "web": "shared_cores"}

    def relabel(world: World, spec: dict[str, Any]) -> None:
        for name, uid, labels in (("batch", "b0", {"koordinator.sh/qosClass": "LSR"}),
                                  ("web", "b1", {"koordinator.sh/qosClass": "SYSTEM"})):  # fmt: skip
            world.api.run_pod(name, uid, metadata={"annotations": {}, "labels": labels}, spec=spec)

    scene(story)


def test_a_list_that_cannot_be_read_leaves_what_the_spec_says(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.file.path.parent.mkdir(parents=True)
        world.file.path.write_text("torn")
        world.run_batch("batch")
        world.api.objects[pod_path("batch")]["metadata"] |= {
            "annotations": {},
            "labels": {"koordinator.sh/qosClass": "LS"},
        }
        async with world.at_work():
            assert written(world.file) == {"batch": "reclaimed_cores"}

    scene(story)


def test_a_pod_that_cannot_be_read_is_counted_and_named(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.run_batch("encode")
        world.api.run_pod("Odd_Name", "b7", spec={"nodeName": "n1", "containers": [{"name": "main"}]})
        async with world.at_work():
            assert world.kept == ["encode"]
            assert world.pods.failure() == "pods that cannot be read: 1, among them UID 'b7'"

    scene(story)


def test_pods_of_batch_cpu_are_told_how_fast_the_nodes_cpu_is_and_others_are_not(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.api.put(NODE, {"metadata": {"annotations": {NORMALIZATION_RATIO: "1.25"}}, "spec": {}, "status": {}})
        asks = {"resources": {"requests": {BATCH_CPU: "2k"}, "limits": {BATCH_CPU: "2k"}}}
        spec = {"nodeName": "n1", "containers": [{"name": "main", **asks}]}
        world.api.run_pod("batch", "b0", metadata={"labels": {"koordinator.sh/qosClass": "BE"}}, spec=spec)
        world.run_batch("encode")

        def told() -> dict[str, float]:
            return {pod.name: pod.cpu_normalization_ratio for pod in world.file.pods()}

        async with world.at_work():
            await world.node.write(OFFER)
            world.run_batch("another")
            await asyncio.sleep(5)
            assert told() == {"batch": 1.25, "encode": 1.0, "another": 1.0}
            world.api.objects[NODE]["metadata"]["annotations"] = {NORMALIZATION_RATIO: "fast"}
            await asyncio.sleep(70)
            assert set(told().values()) == {1.0}

    scene(story)


def test_after_a_restart_the_cpu_is_as_fast_as_it_was_until_the_node_is_read(scene: Scene) -> None:
    async def story(world: World) -> None:
        world.api.put(NODE, {"metadata": {"annotations": {NORMALIZATION_RATIO: "1.25"}}, "spec": {}, "status": {}})
        asks = {"resources": {"requests": {BATCH_CPU: "2k"}, "limits": {BATCH_CPU: "2k"}}}
        spec = {"nodeName": "n1", "containers": [{"name": "main", **asks}]}
        world.api.run_pod("batch", "b0", metadata={"labels": {"koordinator.sh/qosClass": "BE"}}, spec=spec)

        def told() -> list[float]:
            return [pod.cpu_normalization_ratio for pod in world.file.pods()]

        async with world.at_work():
            # Nobody has shown anything yet, so that the Node is not read.
            assert told() == [1.0]
            await world.node.write(OFFER)
            await asyncio.sleep(1)
            assert told() == [1.25]
        kube, file = FakeKube(world.api), PodsFile(world.file.path.parent)
        world.pods = KubePods(kube, "n1", file, LoopClock(), fallback="shared_cores")
        world.node = KubeNode(kube, "n1", world.pods.asked)
        async with world.at_work():
            assert told() == [1.25]
            world.api.objects[NODE]["metadata"]["annotations"] = {NORMALIZATION_RATIO: "2"}
            await world.node.write(OFFER)
            await asyncio.sleep(1)
            assert told() == [2.0]

    scene(story)
