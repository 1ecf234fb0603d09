"""`docker compose up --wait` in deploy/compose: the over-commit story, killed containers, every event exactly once."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nats
import nats.errors
import pytest
from compose_rig.parts import PROJECT
from compose_rig.project import Project
from rig_parts import until
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
from shared.contracts.eviction import EvictionEvent
from shared.errors import Unavailable
from shared.ports import Received

pytestmark = [pytest.mark.compose, pytest.mark.timeout(900)]

EVICTORS = {"node-a": "node-a-evictor", "node-b": "node-b"}
"""The container that has the evictor of each node."""
NODE_A = ("node-a-machine", "node-a-metrics", "node-a-advisor", "node-a-qrm", "node-a-evictor", "node-a-reporter")
SERVICES = {"nats", "central", "subscriber", "node-b-machine", "node-b", *NODE_A}
VICTIM = "reclaimed-large-pod-2"
RULE = (
    "met threshold in scope: katalyst.kubewharf.io/reclaimed_millicpu "
    "from plugin: reclaimed-resource-pressure-eviction-plugin"
)
STORY = [
    ("intended", f"Intend to evict; reason: {RULE}"),
    ("created", f"Successfully create eviction; reason: {RULE}"),
    ("succeeded", f"Evicted pod has been deleted physically; reason: {RULE}"),
]
STORY_LIMIT_S, OUTBOX_LIMIT_S = 100.0, 60.0
"""A story begins every 40 s, and the evictor may have to cool down first."""


def stored(project: Project, subject: str = event_filter()) -> list[Received]:
    """What the stream holds now, as anybody may read it without a password; nothing while the server is away."""

    async def read() -> list[Received]:
        bus = await connect(project.nats_url, name="cli/test", connect_timeout_s=2.0, clock=SystemClock())
        try:
            return list(await bus.replay(EVENTS_STREAM, subject))
        finally:
            await bus.drain()

    try:
        return asyncio.run(read())
    except Unavailable:
        return []


def events(project: Project, node: str = "*") -> list[EvictionEvent]:
    found = [read_event(one.subject, one.headers, one.data) for one in stored(project, subject=event_filter(node=node))]
    assert [one for one in found if not isinstance(one, EvictionEvent)] == []
    return [one for one in found if isinstance(one, EvictionEvent)]


def by_intent(found: Sequence[EvictionEvent]) -> dict[str, list[EvictionEvent]]:
    """Each eviction's events in the order of the stream, oldest eviction first."""
    told: dict[str, list[EvictionEvent]] = {}
    for event in found:
        told.setdefault(event.intent_id, []).append(event)
    return told


def stories(project: Project, node: str) -> list[list[tuple[str, str]]]:
    """Phases and messages of each eviction of the victim on a node."""
    told = by_intent(events(project, node)).values()
    return [[(event.phase, event.message) for event in one] for one in told if one[0].pod == VICTIM]


def next_under_way(project: Project, node: str) -> str:
    """Wait for an eviction that has begun and not ended; its intent id."""
    begun: list[str] = []

    def found() -> bool:
        begun[:] = [intent for intent, told in by_intent(events(project, node)).items() if told[-1].phase == "created"]
        return bool(begun)

    until(found, STORY_LIMIT_S, f"an eviction under way on {node}")
    return begun[-1]


def phases(project: Project, node: str, intent: str) -> list[str]:
    return [event.phase for event in by_intent(events(project, node)).get(intent, [])]


def finished(project: Project, node: str, intent: str) -> Callable[[], bool]:
    return lambda: phases(project, node, intent) == ["intended", "created", "succeeded"]


@pytest.fixture(scope="module")
def consumer(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that the example consumer writes on the host, from before the first kill to the end."""
    file = tmp_path_factory.mktemp("consumer") / "evictions.jsonl"
    project.exec("central", "sublet", "consumers", "add", "team-a", "--no-login")
    url = project.nats_url.replace("nats://", "nats://team-a:team-only@")
    words = ["setpriv", "--pdeathsig", "KILL", sys.executable, "examples/consumers/python/consumer.py", str(file)]
    environment = {"SUBLET_NATS_URL": url, "SUBLET_DURABLE": "team-a", "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(words, cwd=PROJECT, env=environment)
    yield file
    process.terminate()
    assert process.wait(patience_s(30)) == 0


def ids_in(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text().splitlines()] if file.exists() else []


def test_every_container_is_healthy_and_confined(project: Project) -> None:
    found = project.containers()
    assert set(found) == SERVICES
    for service, one in found.items():
        host, state = one["HostConfig"], one["State"]
        assert (service, state["Status"], state["Health"]["Status"]) == (service, "running", "healthy")
        assert (host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"]) == (True, ["ALL"], False), service
        assert (one["Config"]["User"], host["SecurityOpt"]) == ("10001:10001", ["no-new-privileges:true"]), service
        assert 0 < host["Memory"] <= 128 << 20, service
        assert 0 < host["NanoCpus"] <= 500_000_000, service
        assert 0 < host["PidsLimit"] <= 64, service
        assert host["RestartPolicy"]["Name"] == "always", service
        published = [binding["HostIp"] for ports in host["PortBindings"].values() for binding in ports]
        assert published == (["127.0.0.1"] * 2 if service == "nats" else []), service


@pytest.mark.parametrize("node", EVICTORS)
def test_the_overcommit_story_is_told_in_order_on_both_nodes(project: Project, node: str) -> None:
    until(lambda: STORY in stories(project, node), STORY_LIMIT_S, f"an eviction of {VICTIM} on {node}")


@pytest.mark.parametrize(
    "subject",
    ["sublet.cluster.v1.event.eviction.created.default.node-a", "sublet.cluster.v1.ready.node-a",
     "$KV.sublet-config.global", "$JS.API.STREAM.DELETE.SUBLET_EVENTS", "$JS.API.STREAM.PURGE.SUBLET_EVENTS"],
)  # fmt: skip
async def test_who_comes_without_a_password_may_read_and_nothing_else(project: Project, subject: str) -> None:
    refused: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def note(error: Exception) -> None:
        if not refused.done():
            refused.set_result(error)

    client = await nats.connect(project.nats_url, error_cb=note)
    try:
        await client.publish(subject, b"{}")
        assert "permissions violation" in str(await asyncio.wait_for(refused, patience_s(10))).lower()
    finally:
        await client.close()


def test_an_eviction_goes_on_after_its_evictor_was_killed(project: Project, consumer: Path) -> None:
    intent = next_under_way(project, "node-a")
    project.kill("node-a-evictor")
    assert phases(project, "node-a", intent) == ["intended", "created"]
    project.up()
    until(finished(project, "node-a", intent), STORY_LIMIT_S, "the end of the eviction")


def test_an_eviction_goes_on_after_the_bus_was_killed(project: Project, consumer: Path) -> None:
    intent = next_under_way(project, "node-b")
    project.kill("nats")
    project.up()
    until(finished(project, "node-b", intent), STORY_LIMIT_S, "the end of the eviction")


@pytest.mark.parametrize("service", ["node-a-qrm", "node-a-evictor", "nats"])
def test_a_service_that_crashes_comes_back_by_itself(project: Project, consumer: Path, service: str) -> None:
    project.crash(service)
    until(lambda: all(map(project.healthy, SERVICES)), STORY_LIMIT_S, "all containers being healthy")


@pytest.mark.parametrize("node", EVICTORS)
def test_the_story_goes_on_after_all_that(project: Project, node: str) -> None:
    before = len(stories(project, node))
    until(lambda: STORY in stories(project, node)[before:], STORY_LIMIT_S, f"another eviction on {node}")


@pytest.mark.parametrize("node", EVICTORS)
def test_everything_in_a_ledger_is_in_the_streams_exactly_once(project: Project, node: str) -> None:
    def sent() -> bool:
        return not any(entry.waiting for entry in project.ledger(EVICTORS[node]))

    until(sent, OUTBOX_LIMIT_S, "an outbox that is empty")
    before, found = project.ledger(EVICTORS[node]), stored(project, subject=event_filter(node=node))
    at = {one.headers["ce-id"]: one.sequence for one in found}
    assert len(at) == len(found), Counter(one.headers["ce-id"] for one in found).most_common(3)
    wanted = {name: sequence for entry in before for name, sequence in entry.sent.items() if name != entry.intent_id}
    assert wanted
    assert {name: at.get(name) for name in wanted} == wanted
    after = {entry.intent_id for entry in project.ledger(EVICTORS[node])}
    told = by_intent(events(project, node))
    assert {entry.intent_id for entry in before} <= set(told) <= after


@pytest.mark.parametrize("node", EVICTORS)
def test_the_audit_of_the_command_line_finds_the_history_whole(project: Project, node: str) -> None:
    assert "the history is whole" in project.exec(EVICTORS[node], "sublet", "audit")


def test_a_consumer_on_the_host_has_every_event_once_and_in_order(project: Project, consumer: Path) -> None:
    wanted = [event.event_id for event in events(project)]
    until(lambda: set(wanted) <= set(ids_in(consumer)), STORY_LIMIT_S, "the consumer having seen everything")
    assert ids_in(consumer)[: len(wanted)] == wanted


def test_the_subscriber_has_printed_every_event_once(project: Project) -> None:
    last = stored(project)[-1].sequence

    def printed() -> list[int]:
        return [int(line.split()[0]) for line in project.logs("subscriber") if line.split()[0].isdecimal()]

    until(lambda: last in printed(), STORY_LIMIT_S, f"event {last} being printed")
    assert printed()[:last] == list(range(1, last + 1))


def test_taken_down_it_leaves_nothing(project: Project, consumer: Path) -> None:
    project.down()
    assert project.left() == []
