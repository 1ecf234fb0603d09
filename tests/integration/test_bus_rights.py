"""A node speaks only for itself on the bus, held by the hub as the chart configures it.

The leaf of the node that does harm has a configuration of its own, without the chart's limits: it is in other hands.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import nats
import pytest
from bus_rights_rig import PASSWORD, Hub, Leaf, at_the_hub, running, started_hub
from fixture_types import Until
from nats.aio.client import Client
from nats.aio.msg import Msg
from slow_machines import patience_s

from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.subjects import CONFIG_BUCKET, DECISIONS_STREAM, EVENTS_STREAM, INTENTS_STREAM, STREAMS
from shared.errors import NotStored, Unavailable
from shared.ports import DurableMessage, Entry

UNLIMITED = {'deny_exports: ["sublet.node.>"]': "", 'deny_imports: ["sublet.node.>"]': ""}
WATCHER = 'NODES { users: [{ user: watcher, password: "watcher-word" }]'
"""Somebody of the test's own among the leaves, who hears what is said there."""
MINE = (
    "sublet.cluster.v1.ready.a",
    "sublet.cluster.v1.intent.a.0a-1",
    "sublet.cluster.v1.event.eviction.created.default.a",
)
NOT_MINE = (
    "sublet.cluster.v1.ready.b",
    "sublet.cluster.v1.intent.b.0a-1",
    "sublet.cluster.v1.event.eviction.created.default.b",
    "sublet.cluster.v1.offer.b",
    "sublet.cluster.v1.figures.b",
    "sublet.cluster.v1.decision.tide.node.-.a",
    "sublet.cluster.v1.probe.0123456789abcdef",
    "sublet.cluster.v1.ready.0.a",
    "sublet.cluster.v1.ready.0.b",
    "sublet.cluster.v1.heard.central-a",
    "sublet.cluster.v1.heard.a",
    "sublet.node.v1.sample.b",
    "sublet.node.v1.alloc.b",
    "sublet.node.v1.ask.b.qrm",
    "$KV.sublet-config.global",
    "$KV.sublet-config.node.a",
    "SUBLET.KV.sublet-config.global",
    "$JS.API.STREAM.DELETE.SUBLET_EVENTS",
    "$JS.hub.API.STREAM.DELETE.SUBLET_EVENTS",
    "$JS.API.STREAM.PURGE.KV_sublet-config",
    "$SYS.REQ.USER.AUTH",
)


OWN = "SUBLET.API.DIRECT.GET.KV_sublet-config.$KV.sublet-config.node.a"
LAST = ("sublet.cluster.v1.intent.z.last", "sublet.cluster.v1.event.eviction.created.default.z")
"""What central stores behind everything else, of a node that nobody speaks for."""


class World:
    """Central at the hub, the agent of node b, and a client of node a's leaf that asks for whatever it wants."""

    def __init__(self, hub: Hub, central: NatsBus, other: NatsBus, thief: Client) -> None:
        self.hub, self.central, self.other, self.thief = hub, central, other, thief
        self.heard: list[str] = []
        """Subjects that reach somebody at the hub, or the other node."""
        self.lasts = 0
        """How many of central's last keys the listener at the hub has heard of."""

    async def read(self) -> None:
        """Return once the hub has read all that the thief has sent, subscriptions among it.

        Thief to leaf and leaf to hub are one connection each, on which everything keeps its order, and both servers
        deal with what they read before they read on. So what stands before an answered request is dealt with.
        """
        assert (await self.thief.request(OWN, timeout=patience_s(20))).data == b"of a"

    async def done(self) -> None:
        """Return once whatever could follow from what the thief has sent has followed, and is heard.

        The hub does what it has read in order, but for JetStream. Several workers share the API's requests of leaves;
        the server counts those that are not finished. Each stream has a queue of what it stores and another of what
        it answers, and the API has one of its answers: something of central's that has gone through each of them has
        gone behind whatever was in it before. What one of them has sent, another may have to store: hence two rounds.
        The listeners come last, each on its own connection.
        """
        await self.read()
        async with asyncio.timeout(patience_s(20)):
            while (await self.hub.server.monitored("jsz"))["api"].get("inflight"):
                await asyncio.sleep(0.005)
        rounds = (self.lasts + 1, self.lasts + 2)
        for number in rounds:
            await self.central.ensure_bucket(CONFIG_BUCKET)
            for subject in LAST:
                await self.central.publish_durable(DurableMessage(subject, b"{}", msg_id=f"{subject} {number}"))
            await self.central.put(CONFIG_BUCKET, "node.z", b"%d" % number)
        async with asyncio.timeout(patience_s(20)):
            while self.lasts < rounds[-1]:
                await asyncio.sleep(0.005)
        await self.other.replay(INTENTS_STREAM, "sublet.cluster.v1.intent.b.*")

    async def stored(self, stream: str) -> list[str]:
        return [received.subject for received in await self.central.replay(stream, ">") if received.subject not in LAST]

    async def config(self) -> dict[str, bytes | None]:
        entries = [await self.central.get(CONFIG_BUCKET, key) for key in ("global", "node.a", "node.b")]
        return {entry.key: entry.value for entry in entries if entry}


CONFIG = {"global": b"g", "node.a": b"of a", "node.b": b"of b"}


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    hub = started_hub(tmp_path / "hub", {"NODES {": WATCHER})
    yield hub
    await hub.close()


@pytest.fixture
async def central(hub: Hub) -> NatsBus:
    bus = await hub.client(f"central:{PASSWORD}", "central/c")
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    await bus.ensure_bucket(CONFIG_BUCKET)
    for key, value in CONFIG.items():
        await bus.put(CONFIG_BUCKET, key, value)
    return bus


def leaf(tmp_path: Path, hub: Hub, node: str, **more: Mapping[str, str]) -> Leaf:
    made = Leaf(tmp_path / f"leaf-{node}", hub, node, **more)
    made.log_in_with(hub.reviews.issue(node))
    return made


@pytest.fixture
async def world(tmp_path: Path, hub: Hub, central: NatsBus) -> AsyncIterator[World]:
    a, b = leaf(tmp_path, hub, "a", replaced=UNLIMITED), leaf(tmp_path, hub, "b")
    async with hub.central_answers():
        with running(a.server, b.server):
            first, other = await at_the_hub(a), await at_the_hub(b)
            thief = await nats.connect(a.server.url, inbox_prefix="_INBOX_node.a")
            world = World(hub, central, other, thief)
            spy = await nats.connect(hub.url(f"central:{PASSWORD}"))

            async def note(message: Msg) -> None:  # what the server and central say of themselves is nobody's attempt
                world.lasts += message.subject == "$KV.sublet-config.node.z"
                if message.subject in (*LAST, "$KV.sublet-config.node.z"):
                    return
                if not message.subject.startswith(("_INBOX", "_R_", "$JS.API", "$JS.EVENT.ADVISORY", "$SYS", "$SRV")):
                    world.heard.append(message.subject)

            await spy.subscribe(">", cb=note)
            await other.subscribe("sublet.>", lambda m: world.heard.append(f"b: {m.subject}"))
            await spy.flush()
            yield world
            for client in (thief, spy):
                await client.close()
            for bus in (first, other):
                await bus.drain()


async def test_a_node_says_what_is_its_own(world: World, until: Until) -> None:
    for subject in MINE:
        await world.thief.publish(subject, b"{}")
    await until(lambda: set(world.heard) == set(MINE))
    assert (await world.stored(INTENTS_STREAM), await world.stored(EVENTS_STREAM)) == ([MINE[1]], [MINE[2]])


async def test_nothing_that_a_node_says_for_another_gets_through(world: World, until: Until) -> None:
    for subject in NOT_MINE:
        await world.thief.publish(subject, b"forged")
    await world.thief.publish(MINE[0], b"{}")
    await world.done()
    assert world.heard == [MINE[0]]
    assert await world.config() == CONFIG
    assert await world.stored(EVENTS_STREAM) == []
    assert await world.stored(DECISIONS_STREAM) == []


async def test_who_may_read_reads_what_central_decided(hub: Hub, central: NatsBus) -> None:
    subject = "sublet.cluster.v1.decision.tide.node.-.a"
    await central.publish_durable(DurableMessage(subject, b"{}", msg_id="1"))
    reader = await hub.client("bridge:bridge-word", "cli/b")
    assert [one.subject for one in await reader.replay(DECISIONS_STREAM, subject)] == [subject]
    with pytest.raises(NotStored):
        await reader.publish_durable(DurableMessage(subject, b"forged", msg_id="2"), budget_s=1)


async def test_an_answer_cannot_be_sent_in_somebody_elses_name(world: World, until: Until) -> None:
    """A server answers to whatever subject the asker names: in its own account that would be a way round all rights."""
    targets = ("$KV.sublet-config.global", *NOT_MINE[:3])
    answers: list[str] = []
    watcher = await nats.connect(world.hub.url("watcher:watcher-word"))

    async def note(message: Msg) -> None:
        answers.append(message.subject)

    for target in targets:
        await watcher.subscribe(target, cb=note)
    await watcher.flush()
    await watcher.flush()  # the first ping overtakes the rest
    for target in targets:
        await world.thief.publish(MINE[1], b'{"node":"b"}', reply=target)
        for api in APIS:
            body = b'{"last_by_subj":"%s"}' % MINE[1].encode()
            await world.thief.publish(f"{api}.STREAM.MSG.GET.SUBLET_INTENTS", body, reply=target)
            await world.thief.publish(f"{api}.DIRECT.GET.KV_sublet-config.$KV.sublet-config.node.a", reply=target)
    await world.thief.publish(MINE[0], b"{}")
    # Heartbeats pass from account to account: an answer arrives as one, which is none (it has no node in it).
    harmless = {MINE[0], MINE[1], NOT_MINE[0]}
    # Of each kind of question the one that may be asked is answered, among the leaves.
    await until(lambda: len(answers) >= 3 * len(targets) or set(world.heard) - harmless)
    await world.done()
    await watcher.close()
    assert set(world.heard) <= harmless
    assert sorted(answers) == sorted(targets * 3)
    assert await world.config() == CONFIG
    assert await world.stored(INTENTS_STREAM) == [MINE[1]] * len(targets)
    assert await world.stored(EVENTS_STREAM) == []


APIS = ("SUBLET.API", "$JS.API", "$JS.hub.API")
NOBODY = (b"", "503")
"""The answer of a server that knows nobody who would answer."""
ASKS = (
    ("DIRECT.GET.KV_sublet-config.$KV.sublet-config.node.b", ""),
    ("DIRECT.GET.KV_sublet-config", {"last_by_subj": "$KV.sublet-config.node.b"}),
    ("DIRECT.GET.SUBLET_INTENTS", {"seq": 1}),
    ("STREAM.MSG.GET.KV_sublet-config", {"last_by_subj": "$KV.sublet-config.node.b"}),
    ("STREAM.INFO.KV_sublet-config", {"subjects_filter": ">"}),
    ("STREAM.DELETE.SUBLET_EVENTS", ""),
    ("STREAM.PURGE.KV_sublet-config", ""),
    ("STREAM.MSG.DELETE.KV_sublet-config", {"seq": 1}),
    (
        "CONSUMER.CREATE.KV_sublet-config.c",
        {"stream_name": "KV_sublet-config", "config": {"name": "c", "deliver_subject": "_INBOX_node.a.x.c"}},
    ),
    (
        "CONSUMER.CREATE.SUBLET_INTENTS.c.sublet.cluster.v1.intent.a.*",
        {"stream_name": "SUBLET_INTENTS", "config": {"name": "c", "deliver_subject": "sublet.cluster.v1.ready.b"}},
    ),
)


async def test_a_node_neither_reads_anothers_configuration_nor_touches_a_stream(world: World, until: Until) -> None:
    answers = {}

    async def note(message: Msg) -> None:
        answers[message.subject] = (message.data, (message.headers or {}).get("Status"))

    await world.thief.subscribe("_INBOX_node.a.x.*", cb=note)
    for api in APIS:
        for number, (ask, body) in enumerate(ASKS):
            text = json.dumps(body).encode() if body else b""
            await world.thief.publish(f"{api}.{ask}", text, reply=f"_INBOX_node.a.x.{api.replace('.', '')}{number}")
    await until(lambda: len(answers) == len(APIS) * len(ASKS) or set(answers.values()) > {NOBODY})
    assert set(answers.values()) == {NOBODY}  # the leaf itself says so; whom somebody else answered it does not tell
    await world.done()
    assert await world.config() == CONFIG
    assert {spec.name for spec in STREAMS} <= set(await _streams(world))


async def test_who_asks_for_what_a_node_may_not_is_told_so(world: World) -> None:
    with pytest.raises(Unavailable, match=f"{EVENTS_STREAM}: nobody answers there: .* this login may not ask for it"):
        await world.other.ensure_stream(next(spec for spec in STREAMS if spec.name == EVENTS_STREAM))


async def _streams(world: World) -> list[str | None]:
    client = await nats.connect(world.hub.url(f"central:{PASSWORD}"))
    try:
        return [info.config.name for info in await client.jetstream().streams_info()]
    finally:
        await client.close()


OF_B = (
    "SUBLET.KV.sublet-config.node.b",
    "sublet.cluster.v1.ready.b",
    "sublet.cluster.v1.intent.b.*",
    "_INBOX_node.b.>",
)
GLOBAL = "SUBLET.KV.sublet-config.global"
ALL = (">", "*.>", "SUBLET.>", "$KV.>", "$JS.>", "_INBOX_node.>", "sublet.cluster.>", "$SYS.REQ.USER.AUTH")


async def test_a_node_that_listens_to_others_hears_only_its_own(world: World, until: Until) -> None:
    heard: list[str] = []

    async def note(message: Msg) -> None:
        heard.append(message.subject)

    for subject in (*OF_B, GLOBAL):
        await world.thief.subscribe(subject, cb=note)
    await world.read()
    await _traffic_of_b(world, until, b"1")
    await until(lambda: GLOBAL in heard)  # after all else of it, and by the same way
    assert heard == [GLOBAL]


async def test_a_node_that_listens_to_everything_hears_nothing_of_others(world: World, until: Until) -> None:
    heard: list[str] = []

    async def note(message: Msg) -> None:
        heard.append(message.subject)

    for subject in ALL:
        await world.thief.subscribe(subject, cb=note)
    await world.read()
    await _ask_for_a_login(world.hub)
    await _traffic_of_b(world, until, b"1")
    await world.read()  # the answer comes by the way by which all of it would have come, and b has heard that already
    # Whole tokens: an inbox of its own may begin with b by chance.
    assert [subject for subject in heard if "b" in subject.split(".") or "USER.AUTH" in subject] == []


async def _ask_for_a_login(hub: Hub) -> None:
    """Until the hub has asked central, and refused."""
    stranger = Client()
    with pytest.raises(nats.errors.Error, match="Authorization Violation"):
        await stranger.connect(hub.url("leaf:word"), allow_reconnect=False)
    await stranger.close()


async def _traffic_of_b(world: World, until: Until, value: bytes) -> None:
    """What a node and central say to each other, until it has arrived; the last is what every node may hear."""
    got: list[Entry] = []
    await world.other.watch(CONFIG_BUCKET, got.append, keys=("global", "node.b"))
    await world.other.publish("sublet.cluster.v1.ready.b", b"{}")
    await world.other.publish_durable(DurableMessage("sublet.cluster.v1.intent.b.0b-1", value, msg_id="b1"))
    await world.other.replay(INTENTS_STREAM, "sublet.cluster.v1.intent.b.*")
    for key in ("node.b", "global"):
        await world.central.put(CONFIG_BUCKET, key, value)
    await until(lambda: {(entry.key, entry.value) for entry in got} >= {("node.b", value), ("global", value)})


async def test_the_services_calls_pass_and_the_outboxs_and_clerks_with_them(world: World, until: Until) -> None:
    node = world.other
    got: list[Entry] = []
    await node.watch(CONFIG_BUCKET, got.append, keys=("global", "node.b"))
    await until(lambda: len(got) == 2)
    await world.central.put(CONFIG_BUCKET, "node.b", b"new")
    await until(lambda: got[-1] == Entry("node.b", b"new", 4))
    intent, event = "sublet.cluster.v1.intent.b.0b-1", "sublet.cluster.v1.event.eviction.created.default.b"
    first = await node.publish_durable(DurableMessage(intent, b"1", msg_id="1", expect_last_subject_seq=0))
    again = await node.publish_durable(DurableMessage(intent, b"1", msg_id="1", expect_last_subject_seq=0))
    assert (first.duplicate, again.duplicate, again.sequence) == (False, True, first.sequence)
    await node.publish_durable(DurableMessage(intent, b"2", msg_id="2", expect_last_subject_seq=first.sequence))
    await node.publish_durable(DurableMessage(event, b"3", msg_id="3"))
    own = "sublet.cluster.v1.intent.b.*"
    assert [r.data for r in await node.replay(INTENTS_STREAM, own)] == [b"1", b"2"]
    assert [r.data for r in await node.replay(INTENTS_STREAM, own, last_per_subject=True)] == [b"2"]
    assert [r.data for r in await node.replay(EVENTS_STREAM, event)] == [b"3"]
    with pytest.raises(NotStored):
        await node.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0b-1", b"4", msg_id="4"), budget_s=0.2)
