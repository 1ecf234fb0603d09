"""Teams' accounts on the real server: what a login may do, how it comes and goes while others stay connected."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import string
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import nats.errors
import pytest
from durable_counts import until_counted
from fixture_types import Until
from nats.aio.client import Client
from present import present
from slow_machines import patience_s

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.accounts import ACCOUNT, LIMITS, AccountsFile, snippet
from shared.adapters.nats.embedded.password import new_password, password_hash
from shared.adapters.nats.embedded.reload import LocalServer, local_server
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS, event_filter
from shared.core.bus.durable import EventFilter, wanted_durable
from shared.core.bus.nats_url import read_nats_url
from shared.errors import Unavailable, Unfit
from shared.ports import DurableMessage
from sublet.consumers.login import known_logins

EVENT = "sublet.cluster.v1.event.eviction.created.{}.node-a"
TEAMS = ("team-a", "team-b")
INFO = "$JS.API.CONSUMER.INFO.SUBLET_EVENTS.{}"
NEXT = "$JS.API.CONSUMER.MSG.NEXT.SUBLET_EVENTS.{}"


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    """Sublet's own connection, without a login, with an event and a durable for each team."""
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    for team in TEAMS:
        await bus.durables.put(wanted_durable(team, EventFilter(namespaces=[team])))
        await bus.publish_durable(DurableMessage(EVENT.format(team), team.encode(), msg_id=team))
    yield bus
    await bus.drain()


@pytest.fixture
def running(server: NatsServer, tmp_path: Path) -> LocalServer:
    found = local_server(tmp_path / "nats")
    assert found is not None
    assert (found.pid, found.url) == (server.pid, server.address)
    return found


async def give(running: LocalServer, team: str) -> str:
    """A login for a team; the address with it."""
    password = new_password()
    await asyncio.to_thread(running.set_login, team, password_hash(password))
    return running.url.replace("nats://", f"nats://{team}:{password}@")


class TeamClient:
    """What a team has: any NATS client with its login."""

    def __init__(self, client: Client, errors: list[str]) -> None:
        self.client, self.errors = client, errors

    @classmethod
    async def come(cls, url: str) -> "TeamClient":
        errors: list[str] = []

        async def note(error: Exception) -> None:
            errors.append(str(error))

        return cls(await nats.connect(url, error_cb=note, max_reconnect_attempts=-1, reconnect_time_wait=0.05), errors)

    @property
    def turned_away(self) -> bool:
        """Whether the server has said so; the client is closed then, or tries again, as it happens to read it."""
        return any("authorization" in error.lower() for error in (*self.errors, str(self.client.last_error)))

    async def said(self, subject: str, data: bytes = b"") -> str:
        """What comes of a question: the answer, or what the server said against it."""
        before = len(self.errors)
        asking = asyncio.create_task(self.client.request(subject, data, timeout=patience_s(10)))
        while not asking.done():
            if len(self.errors) > before:
                asking.cancel()
                return self.errors[-1]
            await asyncio.sleep(0.005)
        try:
            return (await asking).data.decode()
        except nats.errors.NoRespondersError:
            return "nobody answers"


async def test_a_team_reads_its_durable_and_acknowledges(bus: NatsBus, running: LocalServer) -> None:
    team = await TeamClient.come(await give(running, "team-a"))
    durable = await team.client.jetstream().pull_subscribe("", durable="team-a", stream=EVENTS_STREAM)
    [message] = await durable.fetch(1, timeout=patience_s(10))
    assert (message.data, present(message.headers)["Nats-Msg-Id"]) == (b"team-a", "team-a")
    await message.ack_sync(timeout=patience_s(10))
    assert (await until_counted(bus, "team-a", pending=0)).oldest is None
    await team.client.close()


FORBIDDEN = (
    EVENT.format("team-a"),
    INFO.format("team-b"),
    NEXT.format("team-b"),
    "$JS.ACK.SUBLET_EVENTS.team-b.1.1.1.1.0",
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.INFO.SUBLET_EVENTS",
    "$JS.API.STREAM.DELETE.SUBLET_EVENTS",
    "$JS.API.STREAM.PURGE.SUBLET_EVENTS",
    "$JS.API.STREAM.MSG.GET.SUBLET_EVENTS",
    "$JS.API.DIRECT.GET.SUBLET_EVENTS",
    "$JS.API.CONSUMER.LIST.SUBLET_EVENTS",
    "$JS.API.CONSUMER.CREATE.SUBLET_EVENTS.mine",
    "$JS.API.CONSUMER.CREATE.SUBLET_EVENTS.team-a." + event_filter(),
    "$JS.API.CONSUMER.DURABLE.CREATE.SUBLET_EVENTS.team-a",
    "$JS.API.CONSUMER.DELETE.SUBLET_EVENTS.team-a",
    "$JS.API.CONSUMER.PAUSE.SUBLET_EVENTS.team-a",
    "$KV.sublet-config.global",
    "sublet.node.v1.sample.node-a",
    "sublet.node.v1.ask.node-a.qrm",
    "$SYS.REQ.SERVER.PING",
    "SUBLET.API.CONSUMER.INFO.SUBLET_EVENTS.team-b",
)


@pytest.mark.timeout(120)
async def test_a_team_may_do_nothing_else(bus: NatsBus, server: NatsServer, running: LocalServer, until: Until) -> None:
    url = await give(running, "team-a")
    await give(running, "team-b")
    team, operator = await TeamClient.come(url), await nats.connect(server.url)
    for subject in FORBIDDEN:
        assert "permissions violation" in await team.said(subject, b"{}"), subject
    for subject in ("sublet.>", "sublet.node.v1.sample.node-a", EVENT.format("*"), "$JS.>", ">"):
        before = len(team.errors)
        await team.client.subscribe(subject)

        def refused(before: int = before) -> bool:
            return len(team.errors) > before

        await until(refused)
        assert "permissions violation" in team.errors[-1], subject
    assert '"name":"team-a"' in await team.said(INFO.format("team-a"))
    assert (await operator.jetstream().stream_info(EVENTS_STREAM)).state.last_seq == len(TEAMS)
    assert [state.durable.name for state in await bus.durables.all()] == list(TEAMS)
    for name in TEAMS:
        await until_counted(bus, name, pending=1)
    await team.client.close()
    await operator.close()


async def test_a_team_cannot_take_all_the_connections_there_are(
    bus: NatsBus, running: LocalServer, until: Until
) -> None:
    url = await give(running, "team-a")
    team = [await nats.connect(url) for _ in range(LIMITS["max_connections"])]
    one_more = Client()
    with contextlib.suppress(nats.errors.Error):  # the server says it with its answer, or right behind it
        await one_more.connect(url, allow_reconnect=False)
    await until(lambda: not one_more.is_connected)
    assert all(client.is_connected for client in team)
    other = await TeamClient.come(await give(running, "team-b"))
    assert '"name":"team-b"' in await other.said(INFO.format("team-b"))
    for client in (*team, one_more, other.client):
        await client.close()


async def test_logins_come_and_go_while_everybody_else_stays_connected(
    bus: NatsBus, running: LocalServer, until: Until
) -> None:
    before = telemetry.DISCONNECTS._value.get()
    one = await TeamClient.come(await give(running, "team-a"))
    other = await TeamClient.come(await give(running, "team-b"))
    await asyncio.to_thread(running.set_login, "team-a", None)
    await until(lambda: one.turned_away)
    assert '"name":"team-b"' in await other.said(INFO.format("team-b"))
    assert (other.errors, telemetry.DISCONNECTS._value.get(), bus.connected) == ([], before, True)
    await bus.publish_durable(DurableMessage(EVENT.format("team-a"), b"", msg_id="later"))
    await one.client.close()
    await other.client.close()


async def test_a_new_password_ends_the_old_one(bus: NatsBus, running: LocalServer, until: Until) -> None:
    old = await TeamClient.come(await give(running, "team-a"))
    new = await TeamClient.come(await give(running, "team-a"))
    await until(lambda: old.turned_away)
    assert '"name":"team-a"' in await new.said(INFO.format("team-a"))
    await old.client.close()
    await new.client.close()


async def test_our_own_client_waits_while_its_login_is_gone(bus: NatsBus, running: LocalServer, until: Until) -> None:
    password = new_password()
    hashed = password_hash(password)
    await asyncio.to_thread(running.set_login, "team-a", hashed)
    url = running.url.replace("nats://", f"nats://team-a:{password}@")
    with_login = await connect(url, name="test/team-a", connect_timeout_s=5, clock=SystemClock())
    await asyncio.to_thread(running.set_login, "team-a", None)
    closed = asyncio.create_task(with_login.wait_closed())
    await until(lambda: not with_login.connected)
    await asyncio.to_thread(running.set_login, "team-a", hashed)
    # Either it waits and comes back, or it is over and says why: it is never silent, and a process then ends.
    await until(lambda: with_login.connected or closed.done())
    assert with_login.connected or "authorization" in closed.result().lower()
    await with_login.drain()
    await closed


async def test_a_wrong_login_is_called_one_and_stays_out_of_the_message(running: LocalServer) -> None:
    url = running.url.replace("nats://", "nats://team-a:secret@")
    with pytest.raises(Unavailable, match=r"does not take this login.*sublet consumers rotate") as caught:
        await connect(url, name="test/a", connect_timeout_s=0.5, clock=SystemClock())
    assert caught.value.reason == "login"
    assert "secret" not in str(caught.value)


async def test_logins_and_streams_outlive_the_server(
    bus: NatsBus, server: NatsServer, running: LocalServer, until: Until
) -> None:
    url = await give(running, "team-a")
    server.kill()
    await until(lambda: not bus.connected)
    server.start()
    await until(lambda: bus.connected)
    team = await TeamClient.come(url)
    assert '"name":"team-a"' in await team.said(INFO.format("team-a"))
    await team.client.close()


async def test_a_server_started_anew_takes_the_logins_of_the_one_before(
    bus: NatsBus, server: NatsServer, running: LocalServer, tmp_path: Path
) -> None:
    url, ours, reader = await give(running, "team-a"), server.url, server.reader_url
    server.kill()
    another = NatsServer(store_dir=tmp_path / "nats", port=read_nats_url(ours).port)
    another.start()
    try:
        assert (another.url, another.reader_url) == (ours, reader)
        team = await TeamClient.come(url)
        assert '"name":"team-a"' in await team.said(INFO.format("team-a"))
        await team.client.close()
    finally:
        another.stop()


async def test_streams_of_a_server_without_accounts_are_adopted(tmp_path: Path) -> None:
    class Before(NatsServer):
        def _access(self) -> str:
            return ""

    for kind, name in ((Before, "$G"), (NatsServer, ACCOUNT)):
        server = kind(store_dir=tmp_path)
        server.start()
        bus = await connect(server.url, name="test/a", connect_timeout_s=5, clock=SystemClock())
        if kind is Before:
            await bus.ensure_stream(STREAMS[1])
            await bus.publish_durable(DurableMessage(EVENT.format("a"), b"kept", msg_id="1"))
        assert [m.data for m in await bus.replay(EVENTS_STREAM, event_filter())] == [b"kept"]
        await bus.drain()
        server.stop()
        assert [path.name for path in (tmp_path / "jetstream").iterdir()] == [name]


def test_what_the_server_refuses_is_taken_back(running: LocalServer) -> None:
    before = running.accounts.path.read_text()
    with pytest.raises(Unavailable, match="refuses the accounts"):
        running.set_login("_sublet", password_hash("x"))  # a user of this name is there: the wall is the name's pattern
    assert running.accounts.path.read_text() == before
    running.set_login("team-a", password_hash("x"))


def test_another_users_server_is_said_to_be_one(running: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_yours(pid: int, number: int) -> None:
        assert (pid, number) == (running.pid, signal.SIGHUP)
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_yours)
    with pytest.raises(Unfit, match="another user's: try with sudo"):
        running.set_login("team-a", password_hash("x"))
    assert running.accounts.logins() == {}


def test_who_may_not_read_the_logins_is_told_and_sees_the_rest(
    running: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_yours(path: Path) -> str:
        raise PermissionError

    assert known_logins(running) == {}
    assert known_logins(None) is None
    monkeypatch.setattr(Path, "read_text", not_yours)
    with pytest.raises(Unfit, match=r"accounts\.json: only the user of the NATS server.*try with sudo"):
        running.set_login("team-a", password_hash("x"))
    assert known_logins(running) is None


def test_a_server_that_has_ended_is_not_found(server: NatsServer, running: LocalServer, tmp_path: Path) -> None:
    server.kill()
    assert list((tmp_path / "nats").glob("*.ports")), "it left this behind"
    assert local_server(tmp_path / "nats") is None
    assert local_server(tmp_path / "nowhere") is None
    with pytest.raises(Unavailable, match="has just ended"):
        running.set_login("team-a", password_hash("x"))


def test_the_file_holds_hashes_and_is_its_owners_alone(running: LocalServer) -> None:
    running.set_login("team-a", password_hash("secret-word"))
    text, log = running.accounts.path.read_text(), running.log_file.read_text()
    assert "secret-word" not in text + log
    assert stat.S_IMODE(running.accounts.path.stat().st_mode) == 0o600
    assert list(running.accounts.logins()) == ["team-a"]
    assert running.accounts.logins()["team-a"] != password_hash("secret-word"), "each has its own salt"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"accounts": {"TEAM_a": {"users": []}}}', '{"accounts": []}'])
def test_a_file_that_cannot_be_read_is_named_and_nothing_starts_without_it(text: str, tmp_path: Path) -> None:
    path: Path = tmp_path / "accounts.json"
    path.write_text(text)
    with pytest.raises(Unavailable, match=r"accounts\.json"):
        AccountsFile(path).logins()
    with pytest.raises(Unavailable, match=r"accounts\.json"):
        NatsServer(store_dir=tmp_path).start()


def test_passwords_are_long_random_and_fit_into_an_address() -> None:
    made = {new_password() for _ in range(100)}
    assert len(made) == 100
    assert all(len(word) == 32 and set(word) <= set(string.ascii_letters + string.digits + "-_") for word in made)


async def test_the_snippet_for_another_server_is_what_ours_has(tmp_path: Path) -> None:
    hashed = password_hash("secret")
    text = snippet("team-a", hashed)
    exported = [line for line in text.splitlines() if line.startswith("  {") and "service" in line]
    account = text.partition("# under accounts:\n")[2].partition("# then")[0]

    class Theirs(NatsServer):
        def _access(self) -> str:
            ours = f"jetstream: enabled, users: [{{user: o, password: o}}], exports: [{','.join(exported)}]"
            return f"accounts: {{ {ACCOUNT}: {{ {ours} }}\n{account} }}\nno_auth_user: o"

    server = Theirs(store_dir=tmp_path)
    server.start()
    bus = await connect(server.address, name="test/a", connect_timeout_s=5, clock=SystemClock())
    await bus.ensure_stream(STREAMS[1])
    await bus.durables.put(wanted_durable("team-a"))
    team = await TeamClient.come(server.address.replace("nats://", "nats://team-a:secret@"))
    assert json.loads(await team.said(INFO.format("team-a")))["name"] == "team-a"
    await team.client.close()
    await bus.drain()
    server.stop()
