"""The CPUs of LSE and LSR pods in their annotation: what differs is written, once, and nothing else."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fixture_types import NewAllocation, NewSample, Virtual

from services.reporter.app import ReporterApp
from services.reporter.core.resource_status import StatusToWrite, statuses_to_write
from services.reporter.ports import ReporterPorts
from services.reporter.reports.resource_status import AGAIN_S, GRANT, MOST, NO_API_SERVER, ResourceStatusReport
from services.reporter.settings import ReporterSettings
from shared.adapters.clock import LoopClock
from shared.adapters.files.node import NodeFile
from shared.app import Context
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.pod import Pod
from shared.contracts.readiness import Readiness
from shared.contracts.sample import NodeReading, NodeSample, NumaReading, PodReading
from shared.core.api_kind import PODS, ApiKind
from shared.core.pods.cpu_binding import RESOURCE_STATUS
from shared.core.pods.koord_qos import QOS_LABEL
from shared.errors import Conflict, Refused, Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import CommonSettings, section
from shared.wire import Wire

TEXT = '{"cpuset":"2-3,26","numaNodeResources":[{"node":0,"resources":{"cpu":"3"}}]}'


def pod(qos: str = "LSR", said: str | None = None, **over: Any) -> PodReading:
    annotations = {} if said is None else {RESOURCE_STATUS: said}
    fields = {"uid": "dd", "name": "db", "qos": "dedicated_cores", "labels": {QOS_LABEL: qos}}
    return PodReading(pod=Pod(**fields | {"annotations": annotations} | over))


def own(pool: str = "dedicated", cpus: str = "2-3,26") -> tuple[PodAllocation, ...]:
    return (PodAllocation(uid="dd", namespace="default", name="db", pool=pool, cpus=cpus),)


def pool(name: str, cpus: str) -> PoolAllocation:
    return PoolAllocation(pool=name, cpus=cpus)


@pytest.mark.parametrize("qos", ["LSE", "LSR"])
@pytest.mark.parametrize("said", [None, "{", "{}", '{"cpuset": "4-6"}'])
def test_a_pod_that_says_other_cpus_than_it_has_or_none_is_written(
    sample: NewSample, allocation: NewAllocation, qos: str, said: str | None
) -> None:
    found = statuses_to_write(sample(pods=(pod(qos, said),)), allocation(pods=own()))
    assert found == (StatusToWrite("default", "db", "dd", TEXT),)


@pytest.mark.parametrize("status", ["partial", "held", "floor"])
def test_another_pods_failed_write_and_a_silent_advisor_keep_nobodys_cpus_unsaid(
    sample: NewSample, allocation: NewAllocation, status: str
) -> None:
    pools = (pool("share", "4-23,27-47"), pool("dedicated", "2-3,26"), pool("reserve", "0-1"))
    found = statuses_to_write(sample(pods=(pod(),)), allocation(pods=own(), pools=pools, status=status))
    assert found == (StatusToWrite("default", "db", "dd", TEXT),)


def test_written_in_part_two_pods_with_the_same_cpus_are_told_nothing(
    sample: NewSample, allocation: NewAllocation
) -> None:
    both = (*own(), PodAllocation(uid="ee", namespace="default", name="db2", pool="dedicated", cpus="3-5"))
    readings = (pod(), pod(uid="ee", name="db2"))
    assert statuses_to_write(sample(pods=readings), allocation(pods=both, pools=(), status="partial")) == ()


def test_a_pod_whose_annotations_are_left_out_of_the_sample_is_known_as_such(
    sample: NewSample, allocation: NewAllocation
) -> None:
    reading = pod().model_copy(update={"annotations_left_out": True})
    (found,) = statuses_to_write(sample(pods=(reading,)), allocation(pods=own()))
    assert not found.shows


def test_the_same_cpus_in_its_schedulers_words_stay_as_they_are(sample: NewSample, allocation: NewAllocation) -> None:
    said = json.dumps({"cpuset": "26,2,3", "other": 1})
    assert statuses_to_write(sample(pods=(pod(said=said),)), allocation(pods=own())) == ()


@pytest.mark.parametrize(
    ("reading", "of_pods", "status"),
    [
        pytest.param(pod(), own("share"), {}, id="in the shared pool: about to be taken over, or refused"),
        pytest.param(pod("LS"), own(), {}, id="no class that binds"),
        pytest.param(pod(labels={}), own(), {}, id="a pod of Katalyst"),
        pytest.param(pod(uid="ee"), own(), {}, id="not in the sample"),
        pytest.param(pod(terminating=True), own(), {}, id="on its way out"),
        pytest.param(pod(), own(cpus=""), {}, id="no CPUs known"),
        pytest.param(pod(), own(), {"status": "failed"}, id="groups that cannot be read"),
        pytest.param(
            pod(), own(), {"status": "partial", "pools": (pool("share", "3,8-9"),)}, id="in part: also others'"
        ),
        pytest.param(pod(), own(), {"status": "dry-run", "mode": "observe"}, id="only looking"),
    ],
)
def test_nothing_else_is_written(
    sample: NewSample,
    allocation: NewAllocation,
    reading: PodReading,
    of_pods: tuple[PodAllocation, ...],
    status: dict[str, Any],
) -> None:
    assert statuses_to_write(sample(pods=(reading,)), allocation(pods=of_pods, **status)) == ()


class World:
    """An API server with pods, and a report over it."""

    def __init__(self, *names: str) -> None:
        self.objects = MemoryObjects(LoopClock())
        for name in names:
            meta = {"name": name, "namespace": "default", "uid": name.encode().hex(), "annotations": {"other": "stays"}}
            self.objects.put(PODS, {"metadata": meta})
        self.report = ResourceStatusReport(self.objects)

    def annotations(self, name: str = "db") -> dict[str, str]:
        found: dict[str, str] = self.objects.documents[PODS, "default", name]["metadata"]["annotations"]
        return found

    @property
    def why(self) -> list[str]:
        return [condition.message for condition in self.report.conditions()]


def wanted(*names: str) -> list[StatusToWrite]:
    return [StatusToWrite("default", name, name.encode().hex(), TEXT) for name in names]


async def test_what_is_sent_is_sent_once_and_again_where_it_does_not_show() -> None:
    world = World("db")
    for now_s in (0.0, 1.0, AGAIN_S - 1):
        await world.report.write(wanted("db"), now_s)
    assert (world.objects.asked, world.annotations()) == (1, {"other": "stays", RESOURCE_STATUS: TEXT})
    await world.report.write(wanted("db"), AGAIN_S)
    assert world.objects.asked == 2
    await world.report.write((), AGAIN_S + 1)
    await world.report.write(wanted("db"), AGAIN_S + 2)
    assert world.objects.asked == 3


async def test_what_no_sample_can_show_is_sent_once() -> None:
    world = World("db")
    hidden = [StatusToWrite("default", "db", b"db".hex(), TEXT, shows=False)]
    for minute in range(60):
        await world.report.write(hidden, minute * AGAIN_S)
    assert (world.objects.asked, world.annotations()[RESOURCE_STATUS]) == (1, TEXT)
    # Other CPUs are news.
    await world.report.write([StatusToWrite("default", "db", b"db".hex(), "{}", shows=False)], 61 * AGAIN_S)
    assert world.objects.asked == 2


async def test_another_pod_of_the_name_is_not_written_and_holds_up_nobody() -> None:
    world = World("db", "web")
    other = StatusToWrite("default", "db", "00", TEXT)
    await world.report.write([other, *wanted("web")], 0.0)
    assert world.annotations("db") == {"other": "stays"}
    assert world.annotations("web") == {"other": "stays", RESOURCE_STATUS: TEXT}
    assert "pod default/db: " in world.why[0]
    assert GRANT not in world.why[0]
    await world.report.write((), 1.0)
    assert world.why == []


class Successor(MemoryObjects):
    """An API server, where other pods have come under the names; it answers a patch with another UID like this."""

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> None:
        raise Conflict("the UID in the precondition does not match", reason="Conflict")


async def test_a_pod_that_has_a_successor_by_now_is_named_and_ends_nothing() -> None:
    report = ResourceStatusReport(Successor(LoopClock()))
    await report.write(wanted("db"), 0.0)
    assert [condition.message for condition in report.conditions()] == [
        "pod default/db: the UID in the precondition does not match"
    ]


class Slow(MemoryObjects):
    """An API server that takes its time over every pod."""

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> None:
        await asyncio.sleep(30)


def test_a_slow_api_server_does_not_hold_up_the_heartbeat(virtual: Virtual, tmp_path: Path) -> None:
    async def story() -> int:
        bus, clock = MemoryBus(), LoopClock()
        wires = {name: Wire(bus, clock, node="node1", service=name) for name in ("reporter", "qrm", "metrics")}
        raw = {"reporter": {"resource_status": True}}
        ports = ReporterPorts(NodeFile(tmp_path / "cnr.json"), pods=Slow(clock))
        context = Context(wires["reporter"], clock, CommonSettings(), raw)
        heard: list[object] = []
        await bus.subscribe(">", lambda message: heard.append(message.subject))
        task = asyncio.create_task(ReporterApp(context, ports, section(ReporterSettings, raw, "reporter")).run())
        await asyncio.sleep(0.01)
        numas, reading = (NumaReading(numa=0, cpus="0-11,24-35"),), NodeReading(online_cpus="0-47")
        sample = wires["metrics"].stamp(NodeSample, node_reading=reading, numas=numas, pods=(pod(),))
        await wires["metrics"].publish(sample)
        await wires["qrm"].publish(wires["qrm"].stamp(Allocation, status="applied", pods=own()))
        await asyncio.sleep(2)
        heard.clear()
        await asyncio.sleep(25)
        task.cancel()
        return sum(1 for subject in heard if f".{Readiness.kind}." in f"{subject}.")

    assert virtual(story()) >= 2


class Hanging(MemoryObjects):
    """An API server whose answer to a patch stays away until it is given up."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(clock)
        self.patching, self.given_up = asyncio.Event(), asyncio.Event()

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> None:
        self.patching.set()
        await self.given_up.wait()
        raise Unavailable("no answer")


@pytest.mark.parametrize("hangs", [True, False], ids=["while a write hangs", "after a write has failed"])
def test_switched_off_it_says_nothing_of_writes_any_more(virtual: Virtual, tmp_path: Path, hangs: bool) -> None:
    async def story() -> tuple[bool, str]:
        bus, clock = MemoryBus(), LoopClock()
        wires = {name: Wire(bus, clock, node="node1", service=name) for name in ("reporter", "qrm", "metrics")}
        raw: dict[str, Any] = {"reporter": {}}
        pods = Hanging(clock)
        written = tmp_path / "cnr.json"
        ports = ReporterPorts(NodeFile(written), pods=pods)
        app = ReporterApp(Context(wires["reporter"], clock, CommonSettings(), raw), ports, ReporterSettings())
        task = asyncio.create_task(app.run())
        app.reconfigure({"resource_status": True})
        await asyncio.sleep(0.01)
        numas, reading = (NumaReading(numa=0, cpus="0-11,24-35"),), NodeReading(online_cpus="0-47")
        sample = wires["metrics"].stamp(NodeSample, node_reading=reading, numas=numas, pods=(pod(),))
        await wires["metrics"].publish(sample)
        await wires["qrm"].publish(wires["qrm"].stamp(Allocation, status="applied", pods=own()))
        await pods.patching.wait()
        if not hangs:
            pods.given_up.set()
            await asyncio.sleep(3)
        said_before = "ResourceStatusNotWritten" in written.read_text("utf-8")
        app.reconfigure({"resource_status": False})
        pods.given_up.set()
        await asyncio.sleep(3)
        task.cancel()
        return said_before, written.read_text("utf-8")

    said_before, after = virtual(story())
    assert said_before is not hangs
    assert "AllocationFresh" in after
    assert "ResourceStatusNotWritten" not in after


class Unpermitted(MemoryObjects):
    """An API server that lets nobody patch."""

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> None:
        raise Refused("pods may not be patched", reason="Forbidden")


async def test_where_the_right_lacks_it_says_what_grants_it() -> None:
    report = ResourceStatusReport(Unpermitted(LoopClock()))
    await report.write(wanted("db"), 0.0)
    assert [condition.message for condition in report.conditions()] == [
        f"pod default/db: pods may not be patched; {GRANT}"
    ]


async def test_without_an_answer_the_next_tick_tries_again_and_a_tick_has_a_bound() -> None:
    names = [f"p{n:02}" for n in range(MOST + 2)]
    world = World(*names)
    world.objects.go_offline()
    await world.report.write(wanted(*names), 0.0)
    assert len(world.why) == 1
    world.objects.go_online()
    await world.report.write(wanted(*names), 1.0)
    assert (world.objects.asked, world.why) == (MOST, [])
    await world.report.write(wanted(*names), 2.0)
    assert world.objects.asked == len(names)


async def test_without_an_api_server_it_says_so() -> None:
    report = ResourceStatusReport(None)
    await report.write(wanted("db"), 0.0)
    assert [condition.message for condition in report.conditions()] == [NO_API_SERVER]
    report.stop()
    assert report.conditions() == ()


@pytest.mark.parametrize("settings", [{}, {"resource_status": True}], ids=["off by default", "on"])
def test_the_reporter_writes_where_it_shall_and_only_by_what_is_new(
    virtual: Virtual, tmp_path: Path, settings: dict[str, bool]
) -> None:
    async def story() -> dict[str, str]:
        world, bus, clock = World("db"), MemoryBus(), LoopClock()
        wires = {name: Wire(bus, clock, node="node1", service=name) for name in ("reporter", "qrm", "metrics")}
        raw = {"reporter": settings}
        ports = ReporterPorts(NodeFile(tmp_path / "cnr.json"), pods=world.objects)
        context = Context(wires["reporter"], clock, CommonSettings(), raw)
        task = asyncio.create_task(ReporterApp(context, ports, section(ReporterSettings, raw, "reporter")).run())

        async def measure() -> None:
            numas, reading = (NumaReading(numa=0, cpus="0-11,24-35"),), NodeReading(online_cpus="0-47")
            pods = (pod(uid=b"db".hex()),)
            sample = wires["metrics"].stamp(NodeSample, node_reading=reading, numas=numas, pods=pods)
            await wires["metrics"].publish(sample)

        async def allocate() -> None:
            pods = (PodAllocation(uid=b"db".hex(), namespace="default", name="db", pool="dedicated", cpus="2-3,26"),)
            await wires["qrm"].publish(wires["qrm"].stamp(Allocation, status="applied", pods=pods))

        await asyncio.sleep(0.01)
        await measure()
        await asyncio.sleep(20)  # the sample is too old by now
        await allocate()
        await asyncio.sleep(2)
        assert world.annotations() == {"other": "stays"}
        await measure()
        await asyncio.sleep(2)
        task.cancel()
        return world.annotations()

    assert virtual(story()) == {"other": "stays", **({RESOURCE_STATUS: TEXT} if settings else {})}
