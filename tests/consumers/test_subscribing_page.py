"""docs/subscribing.md: its commands run, its example is what is sent, its figures are the product's."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import nats
import pytest
from consumer_rig import EXAMPLES, LANGUAGES, Language
from events_told import Teller, evictions
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig
from present import present
from slow_machines import patience_s

from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import DEAD_LETTERS_STREAM, EVENTS_STREAM, STREAMS, event_filter, event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import PHASES
from shared.contracts.ids import intent_id

pytestmark = [pytest.mark.consumers, pytest.mark.timeout(120)]

ROOT = EXAMPLES.parents[1]
PAGE = (ROOT / "docs" / "subscribing.md").read_text()
PATIENCE_S = patience_s(30.0)
FOR_EVER = "until Ctrl-C"
LAST_POD = "batch-1"
"""Of the events that are told to a command of the page."""
OPERATORS = "sublet consumers "

EXAMPLE = EvictionEvent(
    node="node-a.example",
    boot_id="5f3a9c1e",
    seq=41,
    sent_at=datetime(2026, 3, 9, 14, 7, 31, 250_000, tzinfo=UTC),
    intent_id=intent_id("node-a.example", "0f6c2d1e-77aa-4b7c-9a51-3f1f2a6f8f10", "memory-pressure", 7),
    namespace="team-a",
    pod="encode-5",
    pod_uid="0f6c2d1e-77aa-4b7c-9a51-3f1f2a6f8f10",
    qos="reclaimed_cores",
    plugin="memory-pressure",
    scope="memory",
    observed=97.5,
    threshold=95,
    phase="created",
    message="Successfully create eviction; reason: met threshold in scope: memory from plugin: memory-pressure",
)


@pytest.fixture
async def client(server: NatsServer) -> AsyncIterator[Client]:
    """A client of NATS that is not the product's."""
    client = await nats.connect(server.url)
    yield client
    await client.close()


def blocks(language: str) -> list[str]:
    """The contents of the page's fenced blocks of one language."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [content for named, content in fenced if named == language]


def commands() -> list[str]:
    return [line for block in blocks("sh") for line in block.splitlines()]


def environment(url: str, folder: Path = Path("/nonexistent")) -> dict[str, str]:
    """As after `make setup`, with the commands of .venv on the path; the server's files are in the folder."""
    where = {"SUBLET_NATS_URL": url, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return os.environ | where | {"SUBLET_STATE_DIR": str(folder)}


def run(line: str, url: str, folder: Path) -> str:
    """What a command of the page prints, and writes to its file; one that goes on for ever is stopped by Ctrl-C."""
    (folder / "out").mkdir(exist_ok=True)
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    written = folder / "out" / "evictions.jsonl"
    written.unlink(missing_ok=True)
    with (folder / "said").open("w+b") as said:
        process = subprocess.Popen(
            ["bash", "-c", f"exec env --default-signal=INT {line}"],
            cwd=folder,
            env=environment(url, folder),
            stdout=said,
            stderr=said,
        )
        try:
            deadline = time.monotonic() + PATIENCE_S
            while FOR_EVER in line and process.poll() is None and LAST_POD not in _text(said.name, written):
                assert time.monotonic() < deadline, f"{line} does not print all events"
                time.sleep(0.05)
            if FOR_EVER in line:
                process.send_signal(signal.SIGINT)
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()
    text = _text(said.name, written)
    assert code in (0, 130), f"{line} ended with {code}:\n{text}"
    return text


def _text(said: str, written: Path) -> str:
    return Path(said).read_text() + (written.read_text() if written.exists() else "")


def headers_shown() -> str:
    return "".join(f"{name}: {value}\n" for name, value in event_headers(EXAMPLE).items())


def body_shown() -> str:
    return json.dumps(json.loads(EXAMPLE.encode()), indent=2) + "\n"


def test_the_example_is_what_is_sent() -> None:
    assert blocks("") == [headers_shown()]
    assert blocks("json") == [body_shown()]


def test_the_phases_are_all_there() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == PHASES


def test_the_limits_are_the_streams() -> None:
    [events] = [spec for spec in STREAMS if spec.name == EVENTS_STREAM]
    assert f"{events.max_age_s / 86_400:g} days and {events.max_bytes >> 20} MiB" in PAGE
    size = sum(len(name) + len(value) + 4 for name, value in event_headers(EXAMPLE).items()) + len(EXAMPLE.encode())
    size += len(event_subject(EXAMPLE)) + 64  # what the server keeps beside it
    assert events.max_bytes // size > 200_000
    assert "(more than 200 000 events)" in PAGE
    assert f"within {events.duplicate_window_s / 60:g} minutes" in PAGE


def test_the_filters_are_the_contracts() -> None:
    shown = re.findall(r"`(sublet\.cluster\.v1\.event\.eviction\.[^`<]+)` \|", PAGE)
    assert shown == [
        event_filter(namespace="team-a"),
        event_filter(phase="succeeded"),
        event_filter(node="node-a.example"),
    ]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^):]+)\)", PAGE))))
def test_what_it_links_to_is_there(target: str) -> None:
    assert (ROOT / "docs" / target).exists()


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_the_table_of_examples_says_how_each_is_run(language: Language) -> None:
    assert f"`cd {language.name} && {language.shown} FILE`" in (EXAMPLES / "README.md").read_text()


def test_the_python_example_pins_what_the_project_pins() -> None:
    pins = (ROOT / "requirements" / "run.in").read_text().splitlines()
    assert (EXAMPLES / "python" / "requirements.txt").read_text().strip() in pins


@pytest.mark.parametrize("line", [line for line in commands() if not line.startswith(("sublet up", OPERATORS))])
async def test_each_command_runs(line: str, server: NatsServer, teller: Teller, tmp_path: Path) -> None:
    await teller.tell(evictions("default", 1, pods=2))
    text = await asyncio.to_thread(run, line, server.url, tmp_path)
    assert ("stored as" if "pretend.py" in line else LAST_POD) in text


async def test_the_operators_commands_run_one_after_the_other(
    server: NatsServer, teller: Teller, tmp_path: Path
) -> None:
    await teller.tell(evictions("team-a", 1, pods=1))
    lines = [line for line in commands() if line.startswith(OPERATORS)]
    expected = {
        "add": ["team-a on SUBLET_EVENTS: created", event_filter(namespace="team-a"), "nats://team-a:"],
        "list": ["PENDING", "UNACKED", "REDELIVERED", "DEAD", event_filter(namespace="team-a")],
        "rotate": ["in team-a.password, for its owner alone"],
        "dead-letters": ["no dead letters"],
        "remove": ["durable and login removed"],
    }
    assert [line.split()[2] for line in lines] == list(expected)
    for line, words in zip(lines, expected.values(), strict=True):
        text = await asyncio.to_thread(run, line, server.url, tmp_path)
        assert all(word in text for word in words), text


def test_the_dead_letters_limits_are_the_streams() -> None:
    [spec] = [spec for spec in STREAMS if spec.name == DEAD_LETTERS_STREAM]
    assert f"`{spec.name}` keeps that ({spec.max_age_s / 86_400:g} days, {spec.max_bytes >> 20} MiB" in PAGE
    assert spec.max_bytes // 400 > 10_000


async def test_pretended_events_arrive_once(server: NatsServer, teller: Teller, tmp_path: Path) -> None:
    first, again = [line for line in commands() if "pretend.py" in line]
    assert (await asyncio.to_thread(run, first, server.url, tmp_path)).count("stored as") == 3
    assert (await asyncio.to_thread(run, again, server.url, tmp_path)).count("dropped, known") == 3
    assert len(await teller.bus.replay(EVENTS_STREAM, event_filter(namespace="default"))) == 3


async def test_a_replay_begins_where_it_is_told(server: NatsServer, teller: Teller, tmp_path: Path) -> None:
    await teller.tell(evictions("default", 1, pods=2))
    by_sequence, by_time = (next(c for c in commands() if option in c) for option in ("--from-sequence", "--hours"))
    told = (await asyncio.to_thread(run, by_sequence, server.url, tmp_path)).splitlines()
    assert [json.loads(line)["sequence"] for line in told] == [2, 3, 4, 5, 6]
    told = (await asyncio.to_thread(run, by_time, server.url, tmp_path)).splitlines()
    assert [json.loads(line)["sequence"] for line in told] == [1, 2, 3, 4, 5, 6]
    nothing = by_time.replace("--hours 2", "--hours 0")
    assert await asyncio.to_thread(run, nothing, server.url, tmp_path) == ""


async def test_a_durable_that_gives_up_says_so_where_the_page_says(client: Client, teller: Teller) -> None:
    [subject] = re.findall(r"`(\$JS\.EVENT\.ADVISORY[^`]+)`", PAGE)
    await teller.tell(evictions("default", 1, pods=1))
    advisories = await client.subscribe(subject.replace("<durable>", "gives-up"))
    config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_deliver=2)
    durable = await client.jetstream().pull_subscribe(
        event_filter(phase="created"), durable="gives-up", stream=EVENTS_STREAM, config=config
    )
    for _ in range(present(config.max_deliver)):
        [message] = await durable.fetch(1, timeout=PATIENCE_S)
        await message.nak()
    with contextlib.suppress(TimeoutError):  # it is the next question that makes the server look
        await durable.fetch(1, timeout=0.1)
    advisory = json.loads((await advisories.next_msg(timeout=PATIENCE_S)).data)
    assert advisory["stream_seq"] == 2


def test_the_local_server_starts_as_it_says() -> None:
    [line] = [line for line in commands() if line.startswith("sublet up")]
    words = [*shlex.split(line, comments=True), "--help"]
    subprocess.run(words, env=environment("nats://127.0.0.1:1"), capture_output=True, check=True)
