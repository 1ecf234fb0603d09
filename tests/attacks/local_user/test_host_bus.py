"""The bus of `sublet up` as another user of the machine meets it: without a login, and with a reader's."""

import contextlib
import encodings.idna  # noqa: F401 - the process of another user could not read it any more
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
import nats.js.errors
import pytest
from nats.aio.client import Client
from slow_machines import patience_s

from shared.contracts.bus.subjects import ask_subject, health_subject
from shared.core.bus.nats_url import read_nats_url
from sublet.bus_login import LOGIN, READER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, so it needs root")

NOBODY, NODE, READERS_GROUP = 65534, "node-a", "nogroup"
FORGED_ADVICE = f"sublet.node.v1.advice.{NODE}"
FORKED = multiprocessing.get_context("fork")
PATIENCE_S = patience_s(60.0)


@dataclass(frozen=True)
class Up:
    """A `sublet up` that runs."""

    pid: int
    state_dir: Path

    def login(self, name: str) -> str:
        """The address in one of its login files."""
        return str(json.loads((self.state_dir / name).read_text())["nats_url"])

    @property
    def server(self) -> str:
        """The address without a login."""
        return read_nats_url(self.login(LOGIN)).servers[0]

    def command(self, *words: str, url: str) -> subprocess.CompletedProcess[str]:
        """A command with a login from outside."""
        env = {**os.environ, "SUBLET_NATS_URL": url, "SUBLET_NODE": NODE, "SUBLET_STATE_DIR": "/nonexistent"}
        return subprocess.run(
            [sys.executable, "-m", "sublet", *words],
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    """Sublet on a simulated machine, with a bus that is started as on a real one."""
    folder = Path(tempfile.mkdtemp(prefix="sublet-bus-"))
    folder.chmod(0o755)
    state_dir = folder / "state"
    env = {
        **os.environ,
        "SUBLET_STATE_DIR": str(state_dir),
        "SUBLET_NODE": NODE,
        "SUBLET_READER_GROUP": READERS_GROUP,
    }
    command = [sys.executable, "-m", "sublet", "up", "--substrate", "sim", "--nats-port", "0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = []
        while "Sublet is up" not in (line := process.stdout.readline()):
            said.append(line)
            assert line, f"it did not come up: {said}"
        yield Up(process.pid, state_dir)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
        shutil.rmtree(folder)


def as_nobody(work: Callable[[], Any], gid: int = 12345) -> Any:
    """What comes of it in a process of another user, without any right of this one."""
    told = FORKED.SimpleQueue()

    def become() -> None:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(NOBODY)
        try:
            told.put(work())
        except Exception:  # noqa: BLE001 - told to whom it concerns
            told.put(traceback.format_exc())

    child = FORKED.Process(target=become)
    child.start()
    child.join(PATIENCE_S)
    assert child.exitcode == 0
    return told.get()


def tried(port: int, *lines: str) -> str:
    """What the server says to lines of its protocol, until it answers the last or closes the connection."""
    with socket.socket() as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", port))
        connection.recv(1 << 16)
        with contextlib.suppress(ConnectionError):
            connection.sendall("".join(f"{line}\r\n" for line in lines).encode())
        said = b""
        with contextlib.suppress(ConnectionError):
            while b"PONG" not in said and (more := connection.recv(1 << 16)):
                said += more
    return said.decode()


ATTACKS = {
    "connect": ["PING"],
    "publish advice": [f"PUB {FORGED_ADVICE} 2", "{}"],
    "put configuration": ["PUB $KV.sublet-config.global 2", "{}"],
    "subscribe": ["SUB > 1"],
    "create a stream": ["PUB $JS.API.STREAM.CREATE.X _INBOX.a 12", '{"name":"X"}'],
    "delete a stream": ["PUB $JS.API.STREAM.DELETE.SUBLET_EVENTS _INBOX.a 0", ""],
}
LOGINS = {
    "none": "{}",
    "no name": '{"user":"","pass":""}',
    "the services' name": '{"user":"_sublet","pass":""}',
    "the services' name as password": '{"user":"_sublet","pass":"_sublet"}',
    "the reader's name": '{"user":"_reader","pass":""}',
    "a wrong password": json.dumps({"user": "_sublet", "pass": "x" * 32}),
    "a token": '{"auth_token":"_sublet"}',
}


def no_login_at_all(port: int) -> dict[str, str]:
    return {what: tried(port, *lines, "PING") for what, lines in ATTACKS.items()}


def every_login(port: int) -> dict[str, str]:
    hello = '"verbose":false,"pedantic":false,"headers":true'
    with_words = {who: f"{login[:-1]}{',' if len(login) > 2 else ''}{hello}}}" for who, login in LOGINS.items()}
    return {
        f"{who}: {what}": tried(port, f"CONNECT {words}", *lines, "PING")
        for who, words in with_words.items()
        for what, lines in ATTACKS.items()
    }


@pytest.fixture
async def ours(up: Up) -> AsyncIterator[Client]:
    """The services' own connection, to see what has come of it."""
    client = await nats.connect(up.login(LOGIN))
    yield client
    await client.close()


async def streams_and_settings(ours: Client) -> tuple[list[str], int]:
    js = ours.jetstream()
    names = sorted(str(info.config.name) for info in await js.streams_info())
    try:
        settings = (await js.stream_info("KV_sublet-config")).state.last_seq
    except nats.js.errors.NotFoundError:
        settings = 0
    return names, settings


@pytest.mark.parametrize("attempt", [no_login_at_all, every_login])
async def test_nobody_comes_in_without_a_login_whatever_he_tries(
    up: Up, ours: Client, attempt: Callable[[int], Any]
) -> None:
    before = await streams_and_settings(ours)
    heard: list[str] = []

    async def hear(message: Any) -> None:
        if message.data == b"{}":
            heard.append(message.subject)

    await ours.subscribe(">", cb=hear)
    await ours.flush()
    port = read_nats_url(up.server).port
    said = as_nobody(lambda: attempt(port))
    for what, answer in said.items():
        assert "-ERR 'Authorization Violation'" in answer, what
        assert "+OK" not in answer, what
        assert "PONG" not in answer, what
    await ours.flush()
    assert heard == []
    assert await streams_and_settings(ours) == before


def test_passwords_stand_in_no_file_and_no_process_that_others_can_read(up: Up) -> None:
    secrets = [read_nats_url(up.login(name)).password or "" for name in (LOGIN, READER)]
    assert all(len(secret) > 20 for secret in secrets)

    def look() -> list[str]:
        of_processes = [path / name for path in Path("/proc").glob("[0-9]*") for name in ("cmdline", "environ")]
        seen = [*readable(up.state_dir), *of_processes]
        return [str(path) for path in seen if any(secret in words(path) for secret in secrets)]

    assert as_nobody(look) == []
    logged = [path for path in (up.state_dir / "logs").iterdir() if any(secret in words(path) for secret in secrets)]
    assert logged == []
    children = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert not any(secret in children for secret in secrets)
    assert all(secret not in words(up.state_dir / "up.json") for secret in secrets)


def readable(folder: Path) -> list[Path]:
    return [Path(root) / name for root, _, names in os.walk(folder) for name in names]


def words(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_the_readers_file_is_for_the_group_that_was_named_and_the_services_for_nobody(up: Up) -> None:
    def what_can_be_read() -> list[str]:
        return [name for name in (LOGIN, READER) if words(up.state_dir / name)]

    assert as_nobody(what_can_be_read) == []
    assert as_nobody(what_can_be_read, gid=NOBODY) == [READER]
    assert as_nobody(lambda: words(up.state_dir / "nats/accounts.json"), gid=NOBODY) == ""


NOBODY_EVICTED = "the stream holds no event: nobody was evicted in the last 14 days, or since it was made\n"


@pytest.mark.parametrize(
    "line", [["status"], ["top", "--once"], ["events"], ["status", "-o", "json"], ["explain", "cpu/3"]]
)
def test_a_reader_sees_what_he_is_to_see(up: Up, line: list[str]) -> None:
    done = up.command(*line, url=up.login(READER))
    said = done.stderr.replace(NOBODY_EVICTED, "") if line == ["events"] else done.stderr
    assert (done.returncode in (0, 1), said) == (True, ""), done.stdout  # 1: the node is not ready yet


FORBIDDEN = (
    FORGED_ADVICE,
    f"sublet.node.v1.sample.{NODE}",
    health_subject(NODE, "qrm"),
    f"sublet.node.v1.admit.{NODE}",
    f"sublet.cluster.v1.intent.{NODE}.uid",
    f"sublet.cluster.v1.event.eviction.created.default.{NODE}",
    "$KV.sublet-config.global",
    "$JS.API.STREAM.CREATE.X",
    "$JS.API.STREAM.DELETE.SUBLET_EVENTS",
    "$JS.API.STREAM.PURGE.SUBLET_EVENTS",
    "$JS.API.STREAM.UPDATE.SUBLET_EVENTS",
    "$JS.API.STREAM.MSG.GET.KV_sublet-config",
    "$JS.API.STREAM.MSG.GET.SUBLET_EVENTS",
    "$JS.API.DIRECT.GET.SUBLET_INTENTS",
    "$JS.API.CONSUMER.CREATE.SUBLET_EVENTS.mine",
    "$JS.API.CONSUMER.DURABLE.CREATE.SUBLET_EVENTS.mine",
    "$JS.API.CONSUMER.DELETE.SUBLET_EVENTS.team-a",
    "SUBLET.API.STREAM.DELETE.SUBLET_EVENTS",
    "$SYS.REQ.SERVER.PING",
)
HEARD = (">", "sublet.>", FORGED_ADVICE, "$KV.>", "$JS.>", "_R_.>", "_INBOX_qrm.>")


async def test_a_reader_may_do_nothing_else(up: Up, ours: Client, until: Any) -> None:
    before, errors = await streams_and_settings(ours), []

    async def note(error: Exception) -> None:
        errors.append(str(error).lower())

    reader = await nats.connect(up.login(READER), error_cb=note)
    for subject in FORBIDDEN:
        seen = len(errors)
        await reader.publish(subject, b"{}", reply="_INBOX.x")
        await until(lambda seen=seen: len(errors) > seen)
        assert "permissions violation" in errors[-1], subject
    for subject in HEARD:
        seen = len(errors)
        await reader.subscribe(subject)
        await until(lambda seen=seen: len(errors) > seen)
        assert "permissions violation" in errors[-1], subject
    await reader.close()
    assert await streams_and_settings(ours) == before


async def test_an_answer_to_a_reader_goes_to_the_reader_wherever_he_wants_it(up: Up, ours: Client) -> None:
    """In one account with the streams an answer is a message on any subject that the asker names."""
    before, heard = await streams_and_settings(ours), []
    targets = (
        "$KV.sublet-config.global",
        FORGED_ADVICE,
        "sublet.cluster.v1.intent.node-a.uid",
        "$JS.API.STREAM.PURGE.SUBLET_EVENTS",
    )

    async def hear(message: Any) -> None:
        heard.append(message.subject)

    for target in targets:
        await ours.subscribe(target, cb=hear)
    asked: list[str] = []

    async def hear_question(message: Any) -> None:
        asked.append(message.subject)

    await ours.subscribe(ask_subject(NODE, "qrm"), cb=hear_question)
    await ours.flush()
    reader = await nats.connect(up.login(READER))
    questions = (ask_subject(NODE, "qrm"), "$JS.API.STREAM.INFO.SUBLET_EVENTS", "$JS.API.DIRECT.GET.SUBLET_EVENTS")
    for question in questions:
        for target in targets:
            await reader.publish(question, b'{"seq":1}', reply=target)
    answer = await reader.request(ask_subject(NODE, "qrm"), timeout=PATIENCE_S)  # answered after all before it
    assert "allocation" in json.loads(answer.data)
    await ours.flush()
    assert len(asked) == len(targets) + 1
    advice = [subject for subject in heard if subject != FORGED_ADVICE]
    assert advice == []
    assert await streams_and_settings(ours) == before
    await reader.close()
