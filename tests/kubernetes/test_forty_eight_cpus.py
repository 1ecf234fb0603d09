"""The tutorial's figures for 48 CPUs on a real API server: three nodes whose machines are simulated.

Simulated are the machine below `/proc` and `/sys`, its kubelet, which is played here, and the speed of its time. Real
are the API server, its scheduler and controllers, and the five services of each node with all their adapters.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from fast_time import SPEED, NodeClock, PatientKube, fast_loop
from kube_rig.cluster import Cluster, CommandError
from paper_node import HOSTNAME, make_namespace, real_s, remove_namespace
from sim_node import SimNode
from slow_machines import patience_s

from services.central.main import PLAN as CENTRAL
from shared.adapters.kube.client import Document, KubeError
from shared.adapters.kube.node import CNRS
from shared.adapters.kube.watch import Collection, Mirror
from shared.app import Plan, Runner
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
from shared.contracts.eviction import EvictionEvent
from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
from shared.core.pods.extended_resources import OTHER_NAME, requests_of
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.settings import common_settings
from sublet.bridge.kube_events import posting_events
from sublet.sim.scenario import load_scenario

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

CALM_SPEED = 2.0
"""While many pods are placed, and no load changes."""
SETTINGS = {
    "metrics": {"period_s": 2.0, "probe_s": 1.0},
    "qrm": {"keeper": False},
    # The tutorial's figures are those of young tenants, and the time of these nodes runs fast.
    "advisor": {"policies": {"adaptive": {"cold_start_s": 86_400}}},
}
STEP_LIMIT_S, CALM_S, LOOK_S = 40.0, 2.0, 0.2
"""Of this machine's time."""

FOLDER = Path(__file__).parent
CRDS, QUICK_START = FOLDER.parents[1] / "deploy/k8s/crds", FOLDER / "quick_start"
PRINTED = dict(zip(("idle", "busy", "peak", "over-commit"),
                   (QUICK_START / "node-status.yaml").read_text().split("---\n"), strict=True))  # fmt: skip
PARTS = ("resourceAllocatable", "resourceCapacity")
NAMESPACE = SIM = "forty-eight"
FIRST, SECOND, THIRD = NODES = ("forty-eight-1", "forty-eight-2", "forty-eight-3")
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LARGER, SMALLER, SMALLER_MILLIS = "reclaimed-large-pod-2", "reclaimed-large-pod-1", 12_000
PLUGIN = "reclaimed-resource-pressure-eviction-plugin"
BURST, ROOM = 60, 3
TEN = {"evictor": {"plugins": {"reclaimed_overcommit": {
    "eviction_threshold": {TUTORIAL_RECLAIMED_CPU: 10, TUTORIAL_RECLAIMED_MEMORY: 10}}}}}  # fmt: skip


@dataclass
class Seen:
    """What the story has shown, by step and node."""

    kcnr: dict[str, str] = field(default_factory=dict)
    """What `kubectl get kcnr NODE --output yaml` prints."""
    node: dict[str, dict[str, int]] = field(default_factory=dict)
    """What the Node has of reclaimed resources, by name."""
    running: dict[str, set[str]] = field(default_factory=dict)
    placed: dict[str, dict[str, int]] = field(default_factory=dict)
    """By node, the reclaimed milli-cores that its pods ask for."""
    unplaced: dict[str, list[str]] = field(default_factory=dict)
    """What the scheduler says of each pod that it has not placed."""
    events: str = ""
    took_s: dict[str, float] = field(default_factory=dict)


class Story:
    """Plays what the tutorial tells, and looks."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder, self.seen = cluster, folder, Seen()
        self._kube, self._broker, self._clock = PatientKube(cluster.admin), MemoryBroker(), NodeClock()
        self._pods: Mirror[Document] = Mirror(Collection(self._kube, PODS), dict, NodeClock())
        self._began_s = time.monotonic()

    async def play(self) -> Seen:
        """From three idle nodes to none."""
        nodes = {name: SimNode(name, SIM, self._kube, self._pods, self._folder / name / "host") for name in NODES}
        try:
            await make_namespace(self._kube, NAMESPACE)
            await asyncio.gather(*(node.register() for node in nodes.values()))
            async with self._at_work(nodes):
                await asyncio.gather(*(self._look_for("44k", "idle", name) for name in NODES))
                await asyncio.gather(self._quick_start(nodes[FIRST]), self._over_commit(nodes[SECOND]))
                await self._burst()
        finally:
            await remove_namespace(self._kube, NAMESPACE)
            for node in nodes.values():
                await node.remove()
                with contextlib.suppress(KubeError):
                    await self._kube.delete(f"{CNRS}/{node.name}")
            await self._kube.close()
        return self.seen

    @contextlib.asynccontextmanager
    async def _at_work(self, nodes: Mapping[str, SimNode]) -> AsyncIterator[None]:
        """The machines, their services, central with a file for its configuration, and the bridge for the events."""
        stop, central = asyncio.Event(), self._runner("central", [CENTRAL], "sim")
        runners = [central, *(self._runner(name, node.plans, "kubernetes") for name, node in nodes.items())]
        players = [self._pods.run(), self._tell_events()]
        for node in nodes.values():
            players += [node.live(), node.breathe()]
        async with asyncio.TaskGroup() as tasks:
            playing = [tasks.create_task(player) for player in players]
            serving = [tasks.create_task(runner.run(stop)) for runner in runners]
            yield
            stop.set()
            assert await asyncio.gather(*serving) == [0] * len(serving)
            for player in playing:
                player.cancel()

    def _runner(self, name: str, plans: Sequence[Plan], substrate: str) -> Runner:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        given = {"node": name, "substrate": substrate, "host_root": folder / "host", "state_dir": folder}
        common = common_settings(given | {"kubeconfig": self._cluster.admin})
        return Runner(plans, MemoryBus(self._broker, self._clock, name=name), self._clock, common, SETTINGS)

    def _configure(self, settings: Document) -> None:
        (self._folder / "central/config.yaml").write_text(yaml.safe_dump(settings))

    async def _tell_events(self) -> None:
        bus = MemoryBus(self._broker, self._clock, name="bridge")
        async with posting_events(PatientKube(self._cluster.admin), NodeClock()) as post:
            async for told in bus.follow(EVENTS_STREAM, event_filter()):
                event = read_event(told.subject, told.headers, told.data)
                assert isinstance(event, EvictionEvent)
                await post(event, {})

    # The steps.

    async def _quick_start(self, node: SimNode) -> None:
        """The tutorial's first example."""
        await self._apply(quick_start_pod("shared-normal-pod"), node.name)
        await self._look_for("42k", "busy", node.name)
        await self._apply(quick_start_pod("reclaimed-normal-pod"), node.name)
        await self._look_for("42k", "busy, one reclaimed pod", node.name, older="40k")
        node.exec("shared-normal-pod", "stress", "-c", "2")
        await self._look_for("40k", "peak", node.name, older="38k")

    async def _over_commit(self, node: SimNode) -> None:
        """The tutorial's over-commit: above ten times what is left nobody goes, above five times the larger pod."""
        self._configure(TEN)
        for step in load_scenario("overcommit").steps:
            for manifest in step.apply or ():
                await self._apply(manifest, node.name)
        await self._until(lambda: len(self._running(node.name)) == 4)
        node.exec("shared-large-pod-2", "stress", "-c", "40")
        await self._look_for("4k", "over-commit", node.name, older="0")
        await real_s(CALM_S)
        self.seen.running["threshold 10"] = self._running(node.name)
        self._configure({})
        await self._until(self._is_told)
        await real_s(CALM_S)
        self.seen.running["threshold 5"] = self._running(node.name)
        self.seen.events = await self._events()
        self._took("threshold 5")

    async def _burst(self) -> None:
        """Many reclaimed pods of the tutorial at once, for any of the nodes; then some of them go."""
        pod = quick_start_pod("reclaimed-normal-pod")
        await asyncio.gather(*(self._apply(pod, named=f"burst-{number}") for number in range(BURST)))
        await self._look_at_burst("burst")
        going = sorted(name for name in self._running(THIRD) if name.startswith("burst"))[:ROOM]
        for name in going:
            await self._kube.delete(f"{PODS}/{name}")
        await self._until(lambda: not {pod["metadata"]["name"] for pod in self._pods.objects.values()} & set(going))
        full = self.seen.placed["burst"]
        await self._until(lambda: self._placed() == full)  # the scheduler takes up to 10 s to try a pod again
        await self._look_at_burst("room again")

    # Hands and eyes.

    async def _apply(self, manifest: Document, node: str = "", named: str = "") -> None:
        """A pod of the tutorial's, for any of the simulated nodes or for one of them."""
        meta, spec = manifest["metadata"], manifest["spec"]
        meta = meta | {"namespace": NAMESPACE, "name": named or meta["name"]}
        place = {SIM: "yes"} | ({HOSTNAME: node} if node else {})
        images = [{"image": "none.example/none"} | container for container in spec["containers"]]
        spec = {"schedulerName": "katalyst-scheduler", "tolerations": [{"key": SIM, "operator": "Exists"}]} | spec
        await self._kube.create(
            PODS,
            manifest | {"metadata": meta, "spec": spec | {"nodeSelector": place, "containers": images}},
            manager="test",
        )

    def _running(self, node: str) -> set[str]:
        pods = (pod for pod in self._pods.objects.values() if pod["spec"].get("nodeName") == node)
        return {pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Running"}

    async def _look_for(self, offer: str, step: str, node: str, older: str = "") -> None:
        """Look once the node says so, its Node under the older name too, or when it should have said it long ago."""

        async def says_so() -> bool:
            status: Document = (await self._found(f"{CNRS}/{node}")).get("status") or {}
            told = {status.get(part, {}).get(TUTORIAL_RECLAIMED_CPU) for part in PARTS}
            shown = (await self._found(f"/api/v1/nodes/{node}"))["status"]["allocatable"].get(TUTORIAL_RECLAIMED_CPU)
            return told == {offer} and shown == (older or offer)

        await self._until(says_so)
        await self._look(step, node)
        self._took(step)

    async def _look(self, step: str, node: str) -> None:
        key = f"{step} on {node}"
        self.seen.kcnr[key] = await self._kubectl("get", "kcnr", node, "--output", "yaml")
        status = (await self._found(f"/api/v1/nodes/{node}"))["status"]
        assert {**status["capacity"], **status["allocatable"]} == status["capacity"]
        amounts = status["allocatable"].items()
        self.seen.node[key] = {name: parse_units(amount) for name, amount in amounts if name in OTHER_NAME}

    async def _look_at_burst(self, step: str) -> None:
        """Once the scheduler has decided about every pod, and then some time later: it must not change its mind."""
        await self._until(lambda: all(pod["spec"].get("nodeName") or said(pod) for pod in self._pods.objects.values()))
        await real_s(CALM_S)
        self.seen.placed[step] = self._placed()
        pods = self._pods.objects.values()
        self.seen.unplaced[step] = [said(pod) for pod in pods if not pod["spec"].get("nodeName")]
        await asyncio.gather(*(self._look(step, name) for name in NODES))
        self._took(step)

    def _placed(self) -> dict[str, int]:
        placed = dict.fromkeys(NODES, 0)
        for pod in self._pods.objects.values():
            if name := pod["spec"].get("nodeName"):
                placed[name] += requests_of(pod).get(RECLAIMED_CPU, 0)
        return placed

    async def _found(self, path: str) -> Document:
        try:
            return await self._kube.get(path)
        except KubeError:
            return {}

    async def _events(self) -> str:
        return await self._kubectl("get", "event", "--namespace", NAMESPACE, "--sort-by", ".metadata.creationTimestamp")

    async def _is_told(self) -> bool:
        return "EvictSucceeded" in await self._events()

    async def _kubectl(self, *words: str) -> str:
        try:
            return await asyncio.to_thread(self._cluster.kubectl, *words)
        except CommandError as error:
            return str(error)

    async def _until(self, condition: Callable[[], bool | Awaitable[bool]]) -> None:
        """Wait until something holds, or for long enough: what is then seen is judged by the tests."""
        end = time.monotonic() + patience_s(STEP_LIMIT_S)
        while time.monotonic() < end:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await real_s(LOOK_S)

    def _took(self, step: str) -> None:
        self.seen.took_s[step] = time.monotonic() - self._began_s


def quick_start_pod(name: str) -> Document:
    document: Document = yaml.safe_load((QUICK_START / f"{name}.yaml").read_text())
    return document


def said(pod: Document) -> str:
    """What the scheduler says of a pod that it cannot place."""
    refused = (one for one in pod["status"].get("conditions", ()) if one.get("reason") == "Unschedulable")
    return next((str(one["message"]) for one in refused), "")


def stand_in(listing: str, wanted: str) -> bool:
    """Whether the lines stand in a listing in their order; kubectl indents by two where the tutorial does by four."""
    lines = iter(listing.splitlines())
    return all(line.replace("    ", "  ") in lines for line in wanted.splitlines())


@pytest.fixture(scope="module")
def seen(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """The story, played once; the kinds stay where somebody has installed them before."""
    there = bool(cluster.get("crd")["items"])
    if not there:
        cluster.kubectl("apply", "--server-side", "--kustomize", str(CRDS))
        cluster.kubectl("wait", "crd", "--for=condition=Established", f"--timeout={patience_s(60):.0f}s", "--all")
    try:
        with fast_loop() as runner:
            yield runner.run(Story(cluster, tmp_path_factory.mktemp("nodes")).play())
    finally:
        if not there:
            cluster.kubectl("delete", "--kustomize", str(CRDS))


STEPS = [
    *(("idle", node) for node in NODES),
    ("busy", FIRST),
    ("peak", FIRST),
    ("over-commit", SECOND),
]


@pytest.mark.parametrize(("step", "node"), STEPS)
def test_kubectl_prints_the_status_that_the_tutorial_prints(seen: Seen, step: str, node: str) -> None:
    assert stand_in(seen.kcnr[f"{step} on {node}"], PRINTED[step]), seen.kcnr[f"{step} on {node}"]


@pytest.mark.parametrize(("step", "node"), STEPS)
def test_the_cnr_offers_what_it_prints_and_nothing_else(seen: Seen, step: str, node: str) -> None:
    wanted, found = (yaml.safe_load(text)["status"] for text in (PRINTED[step], seen.kcnr[f"{step} on {node}"]))
    for part, amounts in wanted.items():
        assert found[part].keys() == {TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY}
        assert found[part] | amounts == found[part]


@pytest.mark.parametrize("node", NODES)
def test_an_idle_node_has_the_resources_under_both_names(seen: Seen, node: str) -> None:
    amounts = yaml.safe_load(PRINTED["idle"])["status"]["resourceAllocatable"]
    cpu, memory = parse_units(amounts[TUTORIAL_RECLAIMED_CPU]), parse_units(amounts[TUTORIAL_RECLAIMED_MEMORY])
    assert seen.node[f"idle on {node}"] == {
        TUTORIAL_RECLAIMED_CPU: cpu, RECLAIMED_CPU: cpu, TUTORIAL_RECLAIMED_MEMORY: memory, RECLAIMED_MEMORY: memory
    }  # fmt: skip


def test_what_a_pod_has_by_one_name_nobody_gets_by_the_other(seen: Seen) -> None:
    before, after = seen.node[f"busy on {FIRST}"], seen.node[f"busy, one reclaimed pod on {FIRST}"]
    assert (before[RECLAIMED_CPU], before[TUTORIAL_RECLAIMED_CPU]) == (42_000, 42_000)
    assert (after[RECLAIMED_CPU], after[TUTORIAL_RECLAIMED_CPU]) == (42_000, 40_000)
    assert after[RECLAIMED_MEMORY] - after[TUTORIAL_RECLAIMED_MEMORY] == 1 << 30


def test_below_ten_times_the_offer_nobody_is_evicted(seen: Seen) -> None:
    assert seen.running["threshold 10"] == {"shared-large-pod-1", "shared-large-pod-2", SMALLER, LARGER}


def test_above_five_times_the_offer_the_larger_reclaimed_pod_is_evicted_and_nobody_else(seen: Seen) -> None:
    assert seen.running["threshold 5"] == {"shared-large-pod-1", "shared-large-pod-2", SMALLER}


def test_kubectl_prints_the_events_that_the_tutorial_prints(seen: Seen) -> None:
    """Without the columns of namespace and age."""
    lines = [line.split(maxsplit=1)[1].split(maxsplit=3) for line in seen.events.splitlines() if "evict" in line]
    reason = f"reason: met threshold in scope: {TUTORIAL_RECLAIMED_CPU} from plugin: {PLUGIN}"
    assert sorted(lines) == [
        ["Normal", "EvictCreated", f"pod/{LARGER}", f"Successfully create eviction; {reason}"],
        ["Normal", "EvictSucceeded", f"pod/{LARGER}", f"Evicted pod has been deleted physically; {reason}"],
    ]


@pytest.mark.parametrize("step", ["burst", "room again"])
def test_the_scheduler_fills_what_is_offered_and_never_more(seen: Seen, step: str) -> None:
    offered = {node: seen.node[f"{step} on {node}"][RECLAIMED_CPU] for node in NODES}
    assert offered == {FIRST: 40_000, SECOND: 4_000, THIRD: 44_000}
    assert seen.placed[step] == {FIRST: 40_000, SECOND: SMALLER_MILLIS, THIRD: 44_000}


def test_every_pod_that_is_left_waits_for_reclaimed_resources(seen: Seen) -> None:
    for step, gone in (("burst", 0), ("room again", ROOM)):
        assert len(seen.unplaced[step]) == BURST - (40 - 2) // 2 - 44 // 2 - gone
        assert all(f"Insufficient {RECLAIMED_CPU}" in message for message in seen.unplaced[step])


def test_how_long_it_took(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ", ".join(f"{step} {took_s:.0f} s" for step, took_s in seen.took_s.items())
    with capsys.disabled():
        print(f"\n48 CPUs: {len(NODES)} nodes at {SPEED:g} times the speed; since the start: {steps}")
    assert list(seen.took_s)[-1] == "room again"
