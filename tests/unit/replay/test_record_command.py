"""`sublet record` as users type it, on a bus in memory."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import typer
from replay_world import make_sample
from typer.testing import CliRunner, Result

from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import ask_subject
from shared.contracts.sample import NodeSample
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire
from sublet import ask
from sublet.ask import AskTarget
from sublet.commands import record
from sublet.replay.traces.reading import read_recording

ROWS = [[cpu, 0, 0, cpu % 2, 0] for cpu in range(4)]


Run = Callable[..., Result]
"""Runs the command with these arguments."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def invoke(*arguments: object) -> Result:
        app = typer.Typer()
        app.command()(record.record)
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    monkeypatch.setenv("SUBLET_NODE", "node1")
    return invoke


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node whose qrm knows four CPUs and whose metrics service says something all the time."""

    @contextlib.asynccontextmanager
    async def connected(_where: AskTarget) -> AsyncIterator[MemoryBus]:
        bus = MemoryBus(clock=SystemClock())
        await bus.serve(ask_subject("node1", "qrm"), lambda _: json.dumps({"topology": ROWS}).encode())
        metrics = Wire(bus, SystemClock(), node="node1", service="metrics")
        fields = make_sample([1.5]).model_dump(include={"window_s", "node_reading", "pods"})

        async def talk() -> None:
            while True:
                await metrics.publish(metrics.stamp(NodeSample, **fields))
                await asyncio.sleep(0)

        talking = asyncio.ensure_future(talk())
        yield bus
        talking.cancel()

    monkeypatch.setattr(ask, "connected", connected)


def test_a_node_is_recorded_and_can_be_replayed(run: Run, node: None, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    result = run("-o", path, "--for", "0.1")
    assert result.exit_code == 0
    assert "the time is over" in result.stderr
    with path.open("rb") as source:
        trace = read_recording("a", source)
        frames = list(trace.frames())
    assert (trace.node, trace.cpus, trace.smt) == ("node1", 4, True)
    assert frames[0].sample.pods[0].containers[0].cpu_usage_cores == 1.5
    assert trace.faults.notes == []


def test_without_a_name_the_file_is_called_after_the_node(
    run: Run, node: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("--for", "0.1")
    assert [path.name.startswith("node1-") for path in Path().iterdir()] == [True]


def test_a_file_that_exists_is_not_written_over(run: Run, node: None, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_text("mine")
    result = run("-o", path, "--for", "0.1")
    assert result.exit_code == 2
    assert "exists: choose another name" in result.stderr
    assert path.read_text() == "mine"


def test_a_folder_that_is_not_there_is_said(run: Run, node: None, tmp_path: Path) -> None:
    result = run("-o", tmp_path / "none" / "a.gz", "--for", "0.1")
    assert result.exit_code == 3
    assert "No such file" in result.stderr


def test_without_a_server_nothing_is_created(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ask, "CONNECT_TIMEOUT_S", 0.05)
    monkeypatch.setenv("SUBLET_NATS_URL", "nats://127.0.0.1:1")
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path / "state"))
    result = run("-o", tmp_path / "x.gz")
    assert result.exit_code == 3
    assert "no NATS server" in result.stderr
    assert not (tmp_path / "x.gz").exists()


def test_too_few_samples_to_be_replayed_are_said(
    run: Run, node: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "LEAST_FRAMES", 1 << 30)
    result = run("-o", tmp_path / "a.jsonl.gz", "--for", "0.1")
    assert result.exit_code == 1
    assert "frames are too few to be replayed; record for longer" in result.stderr
    assert (tmp_path / "a.jsonl.gz").exists()
