"""Somebody who answers in the services' place, as with their login: no command does what an answer says."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
import typer
from nats.aio.msg import Msg
from slow_machines import patience_s
from typer.testing import CliRunner

from shared.adapters.nats.embedded.server import NatsServer
from shared.errors import Unavailable
from sublet import ask
from sublet.commands import audit, config, consumers, doctor, events, explain, record, status, top
from sublet.configuration import publishing
from sublet.pods import admission

NODE = "node-a"
VICTIM_TEXT = "a file of root's\n"


class Rogue:
    """Answers every question of the bus with one text, from a thread of its own."""

    def __init__(self, url: str) -> None:
        self.answer, self.server_url = b"{}", url
        self.asked = 0
        self._url, self._up, self._stop = url, threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._answer_all(),))

    async def _answer_all(self) -> None:
        client = await nats.connect(self._url)

        async def say(message: Msg) -> None:
            self.asked += 1
            await client.publish(message.reply, self.answer)

        for subject in ("sublet.node.v1.ask.>", "sublet.node.v1.admit.>"):
            await client.subscribe(subject, cb=say)
        js = client.jetstream()
        bucket = await js.create_key_value(bucket="sublet-config")
        await bucket.put("global", b'{"a": "\x1b]0;owned\x07", "b": [[[')
        self._up.set()
        await self._stop.wait()
        await client.close()

    def __enter__(self) -> "Rogue":
        self._thread.start()
        assert self._up.wait(patience_s(20))
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def rogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rogue]:
    server = NatsServer(store_dir=tmp_path_factory.mktemp("nats"))
    server.start()
    try:
        with Rogue(server.url) as rogue:
            yield rogue
    finally:
        server.stop()


def answers(victim: Path, program: Path) -> dict[str, bytes]:
    """What a rogue might say; every text in the first is a path or a command."""
    paths: dict[str, Any] = {
        "config": {"file": str(victim), "refused": str(victim), "revision": 1},
        "topology": str(victim),
        "log": str(victim),
        "nats_url": f"nats://{victim}",
        "command": [str(program)],
        "exec": str(program),
        "file": str(victim),
        "recent": [{"intent": {"intent_id": str(victim), "namespace": "default", "pod": "web"}, "step": f"!{program}"}],
        "write_failure": f"\x1b]0;owned\x07\x1b[2J $({program})",
        "health": {"service": str(program), "ok": False, "why": str(victim)},
        "refused": {"default/web": "\x1b[2J"},
    }
    return {
        "paths": json.dumps(paths).encode(),
        "paths that climb": json.dumps({"config": {"file": f"../../..{victim}"}}).encode(),
        "no mapping": b"[1, 2]",
        "other shapes": json.dumps({key: [{"intent": 5}] for key in paths}).encode(),
        "deep": b'{"config":' * 50_000 + b"1" + b"}" * 50_000,
        "large": b'{"config": {"file": "' + b"x" * 900_000 + b'"}}',
        "no text": b"\xff\x00",
        "nothing": b"",
    }


COMMANDS = [
    ["status"],
    ["status", "-o", "json"],
    ["top", "--once"],
    ["explain", "pod/web"],
    ["explain", "cpu/0"],
    ["config", "show"],
    ["config", "apply", "-f", "FILE"],
    ["record", "--for", "0.1", "-o", "OUT"],
    ["events"],
    ["audit"],
    ["consumers", "list"],
    ["doctor", "--node"],
]


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    for module in (status, top, explain, config, record, events, audit, consumers, doctor):
        module.register(app)
    return app


@pytest.mark.parametrize("line", COMMANDS, ids=" ".join)
def test_no_command_opens_writes_or_runs_what_an_answer_says(
    rogue: Rogue, app: typer.Typer, line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_dir, victim, program, ran = tmp_path / "state", tmp_path / "victim", tmp_path / "program", tmp_path / "ran"
    state_dir.mkdir()
    victim.write_text(VICTIM_TEXT)
    victim.chmod(0o600)
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    wanted = tmp_path / "wanted.yaml"
    wanted.write_text("evictor: {}\n")
    for name, value in (("NATS_URL", rogue.server_url), ("NODE", NODE), ("STATE_DIR", str(state_dir))):
        monkeypatch.setenv(f"SUBLET_{name}", value)
    monkeypatch.setattr(ask, "ANSWER_TIMEOUT_S", 5.0)
    monkeypatch.setattr(publishing, "PUBLISH_TIMEOUT_S", 0.2)
    monkeypatch.chdir(tmp_path)
    words = [{"FILE": str(wanted), "OUT": str(tmp_path / "out.jsonl.gz")}.get(word, word) for word in line]
    for what, rogue.answer in answers(victim, program).items():
        before = rogue.asked
        result = CliRunner().invoke(app, words)
        assert result.exception is None or isinstance(result.exception, SystemExit), (what, result.exception)
        assert result.exit_code in (0, 1, 2, 3), what
        assert "\x1b]0" not in result.output, what
        assert "\x1b[2J" not in result.output, what
        assert (victim.read_text(), victim.stat().st_mode & 0o777) == (VICTIM_TEXT, 0o600), what
        assert not ran.exists(), what
        assert line[0] in ("events", "audit", "consumers", "doctor") or rogue.asked > before, what
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    known = {"state", "victim", "program", "wanted.yaml", "state/config.yaml", "out.jsonl.gz"}
    assert left <= known
    assert line[:2] == ["config", "apply"] or "state/config.yaml" not in left


def test_an_admission_that_cannot_be_read_is_none(
    rogue: Rogue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SUBLET_NATS_URL", rogue.server_url)
    monkeypatch.setenv("SUBLET_NODE", NODE)
    for rogue.answer in (b"[]", b"{", b'{"refused": 5}', b'{"refused":' * 5000, b"\xff"):
        with pytest.raises(Unavailable, match="its answer cannot be read"):
            asyncio.run(admission._ask(()))
