"""Every login asks every question of JetStream, with every subject that could do harm as the place for the answer.

The server sends an answer to whatever subject the asker names, and nobody checks that name. So for each login, in each
deployment: what it is answered is exactly what its row says, and nothing of anybody else's has changed or been heard.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import nats.errors
import pytest
from bus_rights_rig import PASSWORD, ComposeServer, Hub, Leaf, at_the_hub, free_port, hub_server, running
from settled import make_streams

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.accounts import exports, team_account
from shared.contracts.bus.subjects import CONFIG_BUCKET, EVENTS_STREAM, INTENTS_STREAM
from shared.core.bus.durable import EventFilter, wanted_durable
from shared.ports import DurableMessage

EVENT = "sublet.cluster.v1.event.eviction.created.default.b"
INTENT = "sublet.cluster.v1.intent.b.0b-1"
DURABLES = ("team-a", "team-b")
TARGETS = (
    "$KV.sublet-config.global",  # the configuration of all nodes
    "$KV.sublet-config.pauses",  # whose evictions are paused
    EVENT,  # a stream
    INTENT,
    "sublet.cluster.v1.ready.b",  # a node's state
    "sublet.cluster.v1.ready.0.b",  # the same as a hub maps it that divides heartbeats
    "sublet.cluster.v1.heard.central-a",  # what a central has heard of all nodes
    "sublet.node.v1.advice.b",
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.SUBLET_EVENTS.team-b",  # the stream of dead letters
    "_INBOX_central.c.victim",  # another's inbox
    "$JS.ACK.SUBLET_EVENTS.team-b.1.1.1.1.0",
)
APIS = ("$JS.API", "$JS.hub.API", "SUBLET.API")
KV_STREAM = f"KV_{CONFIG_BUCKET}"
ANSWERS_LIMIT_S = 20.0
PUSH = {"deliver_subject": "$KV.sublet-config.global", "deliver_policy": "all", "ack_policy": "none"}


def questions() -> Mapping[str, Any]:
    """The verbs of the API with a body each that does something where it is allowed."""
    found: dict[str, Any] = {
        "INFO": "", "STREAM.NAMES": {}, "STREAM.LIST": {}, "ACCOUNT.PURGE.SUBLET": "", "META.LEADER.STEPDOWN": {},
        "STREAM.CREATE.OWN": {"name": "OWN", "subjects": ["sublet.node.>"]},
    }  # fmt: skip
    for stream in (EVENTS_STREAM, INTENTS_STREAM, KV_STREAM):
        last = {KV_STREAM: "$KV.sublet-config.global", EVENTS_STREAM: EVENT, INTENTS_STREAM: INTENT}[stream]
        push = {"stream_name": stream, "config": {"name": "p", **PUSH}}
        found |= {
            f"STREAM.INFO.{stream}": {"subjects_filter": ">"},
            f"STREAM.MSG.GET.{stream}": {"last_by_subj": last},
            f"DIRECT.GET.{stream}": {"seq": 1, "next_by_subj": ">", "batch": 2},
            f"DIRECT.GET.{stream}.{last}": "",
            f"STREAM.UPDATE.{stream}": {"name": stream, "subjects": ["own.>"], "republish": {"src": ">", "dest": ">"}},
            f"STREAM.PURGE.{stream}": {},
            f"STREAM.MSG.DELETE.{stream}": {"seq": 1},
            f"STREAM.SNAPSHOT.{stream}": {"deliver_subject": "$KV.sublet-config.global"},
            f"STREAM.LEADER.STEPDOWN.{stream}": {},
            f"STREAM.PEER.REMOVE.{stream}": {"peer": "hub-0"},
            f"CONSUMER.NAMES.{stream}": {},
            f"CONSUMER.LIST.{stream}": {},
            f"CONSUMER.CREATE.{stream}": push,
            f"CONSUMER.CREATE.{stream}.p": push,
            f"CONSUMER.CREATE.{stream}.p.{last}": {**push, "config": {"name": "p", "filter_subject": last, **PUSH}},
            f"CONSUMER.DURABLE.CREATE.{stream}.p": {**push, "config": {"durable_name": "p", **PUSH}},
        }
        for durable in DURABLES:
            found |= {
                f"CONSUMER.INFO.{stream}.{durable}": "",
                f"CONSUMER.PAUSE.{stream}.{durable}": {"pause_until": "2099-01-01T00:00:00Z"},
                f"CONSUMER.MSG.NEXT.{stream}.{durable}": {"batch": 5, "no_wait": True},
                f"CONSUMER.UNPIN.{stream}.{durable}": {"group": "g"},
            }
    # What ends something stands last: before it there is something that could be taken.
    found |= {f"CONSUMER.DELETE.{EVENTS_STREAM}.{durable}": "" for durable in DURABLES}
    return found | {f"STREAM.DELETE.{stream}": "" for stream in (KV_STREAM, INTENTS_STREAM, EVENTS_STREAM)}


SAYS = (
    *TARGETS,
    "$SYS.REQ.USER.AUTH",
    "$SYS.REQ.SERVER.PING.CONNZ",
    "$JS.ACK.SUBLET_EVENTS.team-a.1.1.1.1.0",
    "sublet.cluster.v1.probe.0",
    "_INBOX_cli.someone.victim",
)
"""What somebody could say outright, without an answer."""

READS = {f"STREAM.INFO.{EVENTS_STREAM}", f"DIRECT.GET.{EVENTS_STREAM}"}
ITS_DURABLE = {f"CONSUMER.INFO.{EVENTS_STREAM}.team-a", f"CONSUMER.MSG.NEXT.{EVENTS_STREAM}.team-a"}
A_NODE = {
    f"STREAM.MSG.GET.{EVENTS_STREAM}",
    f"STREAM.MSG.GET.{INTENTS_STREAM}",
    f"DIRECT.GET.{KV_STREAM}.$KV.{CONFIG_BUCKET}.global",
}
ANSWERED: Mapping[str, set[str]] = {
    "bridge": READS,
    "reader": READS,
    "team": ITS_DURABLE,
    "leaf": A_NODE,
    "logins": set(),
}
"""By login the questions that it may ask, of all: this is the table."""


@dataclass
class World:
    """A deployment's bus at work: central with its streams, teams' durables, and whoever has which login."""

    url: str
    """Central's."""
    central: NatsBus
    logins: Mapping[str, str]
    """URL by login; "none" is who has none."""


async def furnished(url: str, logins: Mapping[str, str], replicas: int) -> World:
    bus = await connect(url, name="central/c", connect_timeout_s=20, clock=SystemClock())
    await make_streams(bus, replicas)
    for durable in DURABLES:
        await bus.durables.put(wanted_durable(durable, EventFilter(namespaces=["default"])))
    for subject in (EVENT, INTENT):
        await bus.publish_durable(DurableMessage(subject, b"{}", msg_id=subject))
    return World(url, bus, logins)


TEAM = "TEAM_team-a"


def with_a_team() -> dict[str, str]:
    """What an operator adds to the chart's configuration for a team, and the node that the leaf is."""
    words = "".join(f"{json.dumps(one)}\n" for one in exports(["team-a"]))
    account = json.dumps(team_account("team-a", "team-word"))
    here = '{ service: "sublet.cluster.v1.intent.*.*", accounts: [NODES] }'
    return {here: f"{here}\n{words}", "SUBLET {": f"{TEAM}: {account}\n  SUBLET {{"}


def chart_logins(hub: Hub) -> dict[str, str]:
    return {
        "bridge": hub.url("bridge:bridge-word"),
        "team": hub.url("team-a:team-word"),
        "logins": hub.url("logins:logins-word"),
        "none": hub.server.url,
    }


@contextlib.asynccontextmanager
async def chart(folder: Path, overlay: str) -> AsyncIterator[World]:
    """The hub, or three of them, and a node's leaf."""
    count = 3 if overlay == "ha" else 1
    ports = [free_port() for _ in range(count)]
    routes = ",".join(f"127.0.0.1:{port}" for port in ports)
    servers = []
    for n, port in enumerate(ports):
        own = {"0.0.0.0:6222": f"127.0.0.1:{port}"} if count > 1 else {}
        env = {"POD_NAME": f"hub-{n}", "ROUTES_PASSWORD": "r", "ROUTES": routes}
        server = hub_server(folder / f"hub-{n}", env, {**own, **with_a_team()})
        server.overlay = overlay
        servers.append(server)
    hub = Hub(servers[0])
    leaf = Leaf(folder / "leaf", hub, "a", replaced={'deny_exports: ["sublet.node.>"]': ""})
    leaf.log_in_with(hub.reviews.issue("a"))
    with running(*servers):
        world = await furnished(hub.url(f"central:{PASSWORD}"), chart_logins(hub), count)
        async with hub.central_answers():
            with running(leaf.server):
                await (await at_the_hub(leaf)).drain()
                yield World(world.url, world.central, {**world.logins, "leaf": leaf.server.url})
        await world.central.drain()


@contextlib.asynccontextmanager
async def compose(folder: Path) -> AsyncIterator[World]:
    """The one server of the deployment; nobody's login is the reader's."""
    server = ComposeServer(store_dir=folder)
    with running(server):  # type: ignore[arg-type]  # a server is a server
        logins = {"reader": server.url, "team": server.url_of("team-a:team-word")}
        world = await furnished(server.url_of("sublet:bus-word"), logins, 1)
        yield world
        await world.central.drain()


DEPLOYMENTS = {
    "demo": ("bridge", "team", "leaf", "logins", "none"),
    "ha": ("bridge", "team", "leaf", "logins", "none"),
    "compose": ("reader", "team"),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("deployment", DEPLOYMENTS)
async def test_a_login_is_answered_what_its_row_says_and_reaches_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deployment: str
) -> None:
    monkeypatch.setenv("SUBLET_BUS_PASSWORD", "bus-word")
    monkeypatch.setenv("SUBLET_TEAM_PASSWORD", "team-word")
    made = compose(tmp_path) if deployment == "compose" else chart(tmp_path, deployment)
    async with made as world, spied_on(world.url) as heard:
        before = await held(world)
        for login in DEPLOYMENTS[deployment]:
            if login == "none":
                with pytest.raises(nats.errors.Error, match="Authorization Violation"):
                    await nats.connect(world.logins[login], allow_reconnect=False)
                continue
            answered = await barrage(world, login)
            assert (login, answered) == (login, ANSWERED[login])
            assert (login, heard) == (login, [])
            assert (login, await held(world)) == (login, before)


async def barrage(world: World, login: str) -> set[str]:
    """Ask and say everything as one login; the questions that were answered, to its own inbox.

    Answers that its row names are waited for; whatever else is answered has come once the server has worked off its
    queues behind the questions.
    """
    client = await nats.connect(world.logins[login], error_cb=ignore)
    own = "_INBOX_node.a.own" if not client._server_info.get("jetstream") else "_INBOX.own"
    answered: list[str] = []
    for number, (verb, body) in enumerate(questions().items()):
        await client.subscribe(f"{own}.{number}.*", cb=noting(verb, answered))  # a delivery keeps its own subject
        text = json.dumps(body).encode() if body != "" else b""
        for place, api in enumerate(APIS):
            for target in TARGETS:
                await client.publish(f"{api}.{verb}", text, reply=target)
            await client.publish(f"{api}.{verb}", text, reply=f"{own}.{number}.{place}")
    for subject in SAYS:
        for target in ("", *TARGETS):
            await client.publish(subject, b'{"forged": true}', reply=target)
    for _ in range(2):  # the first ping overtakes what is not written yet
        await client.flush(timeout=200)
    with contextlib.suppress(TimeoutError):  # what is missing then is told by the comparison
        async with asyncio.timeout(ANSWERS_LIMIT_S):
            while not ANSWERED[login] <= set(answered):
                await client.flush(timeout=200)
    before = -1
    while len(answered) != before:
        before = len(answered)
        await settled(world)
        await client.flush(timeout=200)
    await client.close()
    return set(answered)


async def ignore(_error: Exception) -> None:
    """What is refused is what this is about."""


def noting(verb: str, answered: list[str]) -> Callable[[Any], Awaitable[None]]:
    async def note(message: Any) -> None:
        if meant(message.data, (message.headers or {}).get("Status")):
            answered.append(verb)

    return note


def meant(data: bytes, status: str | None) -> bool:
    """Whether somebody answered, and not that there is nobody, or nothing here, to ask."""
    if status == "503":
        return False
    with contextlib.suppress(ValueError, AttributeError):
        return "not enabled for account" not in str((json.loads(data).get("error") or {}).get("description", ""))
    return True


@contextlib.asynccontextmanager
async def spied_on(url: str) -> AsyncIterator[list[str]]:
    """What is said in Sublet's own account, but for what servers and central say, and what is a team's own."""
    heard: list[str] = []
    advisory, its_own = "$JS.EVENT.ADVISORY.", "$JS.ACK.SUBLET_EVENTS.team-a."
    own = ("_R_.", "$JS.API.", "_INBOX_central.c.", *(advisory + of for of in ("API", "STREAM", "CONSUMER.LEADER")))

    async def note(message: Any) -> None:
        if message.subject.startswith(its_own) or message.reply.startswith(its_own):
            return
        if message.subject in TARGETS or not message.subject.startswith(own):
            heard.append(message.subject)

    spy = await nats.connect(url)
    await spy.subscribe(">", cb=note)
    await spy.flush()
    try:
        yield heard
    finally:
        await spy.close()


async def settled(world: World) -> None:
    """Return once central's own questions have gone through every queue of the server behind the others."""
    for _ in range(2):
        await world.central.ensure_bucket(CONFIG_BUCKET)
        for stream in (EVENTS_STREAM, INTENTS_STREAM):
            await world.central._link.js.get_msg(stream, 1)
        for durable in DURABLES:
            await world.central.durables.named(durable)


async def held(world: World) -> Mapping[str, Any]:
    """What a login could have changed: configuration, streams, and the durables of teams."""
    js, found = world.central._link.js, {}
    for info in await js.streams_info():
        state = info.state
        found[str(info.config.name)] = (state.messages, state.first_seq, state.last_seq, info.config.subjects)
    entry = await world.central.get(CONFIG_BUCKET, "global")
    consumers = sorted(str(info.name) for info in await js.consumers_info(EVENTS_STREAM) if info.config.durable_name)
    other = await world.central.durables.named("team-b")
    return {**found, "global": entry, "durables": consumers, "team-b": other}
