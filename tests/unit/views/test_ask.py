"""How the commands find the bus and what they say when nobody is there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from fixture_types import Virtual
from typer.main import Typer
from typer.testing import CliRunner

from shared.contracts.bus.subjects import ask_subject
from shared.fakes.memory_bus import MemoryBus
from sublet import ask
from sublet.commands import config, events, explain, status, top

COMMANDS = [
    pytest.param(["status"], id="status"),
    pytest.param(["top", "--once"], id="top"),
    pytest.param(["events"], id="events"),
    pytest.param(["explain", "pod/encode"], id="explain pod"),
    pytest.param(["explain", "cpu/0"], id="explain cpu"),
    pytest.param(["config", "show"], id="config show"),
]


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    for module in (status, top, events, explain, config):
        module.register(app)
    return app


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings that lead to a port where nobody listens."""
    monkeypatch.setattr(ask, "CONNECT_TIMEOUT_S", 0.05)
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("SUBLET_NODE", "node1")
    monkeypatch.setenv("SUBLET_NATS_URL", "nats://127.0.0.1:1")


@pytest.mark.parametrize("arguments", COMMANDS)
def test_without_a_server_every_command_says_one_line_and_ends_with_3(app: Typer, arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 3
    assert result.stderr == (
        "sublet: no NATS server at 127.0.0.1:1: this address was given (nats_url, SUBLET_NATS_URL): is it right, and "
        "does a server run there?\n"
    )


@pytest.mark.parametrize(
    ("what", "word"),
    [("No-de/x", "as node/NAME"), ("cpu/x", "number of a CPU"), ("cpu/-1", "number of a CPU"), ("cpu/", "cpu/22")],
)
def test_what_cannot_be_explained_is_refused_with_what_can(app: Typer, what: str, word: str) -> None:
    result = CliRunner().invoke(app, ["explain", what])
    assert result.exit_code == 2
    assert word in " ".join(result.stderr.replace("│", " ").split())


def test_on_kubernetes_nobody_misses_central_on_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "central" in ask.target().services
    monkeypatch.setenv("SUBLET_SUBSTRATE", "kubernetes")
    assert ask.target().services == ("metrics", "advisor", "qrm", "evictor", "reporter")


def test_an_unknown_phase_is_refused(app: Typer) -> None:
    assert CliRunner().invoke(app, ["events", "--phase", "done"]).exit_code == 2


def test_what_the_settings_leave_open_comes_from_the_run_on_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "login.json").write_text(json.dumps({"node": "other", "nats_url": "nats://127.0.0.1:9"}))
    assert ask.target() == ask.AskTarget("node1", "nats://127.0.0.1:1")
    monkeypatch.delenv("SUBLET_NODE")
    monkeypatch.delenv("SUBLET_NATS_URL")
    assert ask.target() == ask.AskTarget("other", "nats://127.0.0.1:9")
    (tmp_path / "login.json").write_text("{")
    assert ask.target().nats_url == "nats://127.0.0.1:4222"


def test_a_service_that_is_silent_or_answers_nonsense_counts_as_silent(virtual: Virtual) -> None:
    async def story() -> Mapping[str, Mapping[str, Any] | None]:
        bus = MemoryBus()
        await bus.serve(ask_subject("node1", "qrm"), lambda _question: b'{"a": 1}')
        await bus.serve(ask_subject("node1", "evictor"), lambda _question: b"[]")
        await bus.serve(ask_subject("node1", "metrics"), lambda _question: b"{")
        return await ask.ask_all(bus, "node1", ("qrm", "evictor", "metrics", "central"))

    assert virtual(story()) == {"qrm": {"a": 1}, "evictor": None, "metrics": None, "central": None}
