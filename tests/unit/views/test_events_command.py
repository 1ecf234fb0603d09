"""`sublet events` as it is typed: what it prints where there is nothing to print."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import typer
from typer.testing import CliRunner, Result

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import STREAMS, event_subject
from shared.contracts.eviction import EvictionEvent
from shared.fakes.memory_bus import MemoryBus
from shared.ports import DurableMessage
from sublet import ask
from sublet.commands import events as module
from sublet.terminal.formats import EVENTS
from sublet.views import events as view

Invoke = Callable[..., Result]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """`sublet events` over a stream that holds these events."""

    def invoke(held: list[EvictionEvent], *arguments: str) -> Result:
        async def story(work: Callable[..., Awaitable[int]]) -> int:
            bus = MemoryBus()
            for spec in STREAMS:
                await bus.ensure_stream(spec)
            for event in held:
                await bus.publish_durable(
                    DurableMessage(event_subject(event), event.encode(), event.event_id, event_headers(event))
                )
            return await work(bus, ask.AskTarget("node1", ""))

        def run(work: Callable[..., Awaitable[int]]) -> None:
            raise SystemExit(asyncio.run(story(work)))

        monkeypatch.setattr(ask, "run", run)
        app = typer.Typer()
        module.register(app)
        return CliRunner().invoke(app, list(arguments))

    return invoke


def test_an_empty_stream_says_that_nobody_was_evicted(command: Invoke) -> None:
    nothing = command([])
    assert (nothing.exit_code, nothing.stdout) == (0, view.head(EVENTS.read("table")) + "\n")
    assert nothing.stderr == "the stream holds no event: nobody was evicted in the last 14 days, or since it was made\n"


@pytest.mark.parametrize(
    "options", [["--namespace", "elsewhere"], ["--since-seq", "99"], ["--phase", "failed"], ["--mode", "dry-run"]]
)
def test_a_list_that_the_options_have_emptied_says_how_many_there_are(
    command: Invoke, events: list[EvictionEvent], options: list[str]
) -> None:
    assert "none of the 2 events in the stream fits --namespace" in command(events, *options).stderr


def test_what_is_there_is_printed_with_date_and_unit_and_without_a_word_more(
    command: Invoke, events: list[EvictionEvent]
) -> None:
    found = command(events)
    assert (found.stdout.count("default/gone"), found.stderr) == (2, "")
    assert "2026-01-01T12:00:00.250Z" in found.stdout
    assert "36.00 cores" in found.stdout
    assert '"observed": 36000' in command(events, "-o", "json").stdout


def test_rehearsals_are_marked_and_can_be_left_out(command: Invoke, events: list[EvictionEvent]) -> None:
    other = {"mode": "dry-run", "pod": "tried", "intent_id": events[0].intent_id[::-1]}
    tried = [event.model_copy(update=other) for event in events]
    rehearsed = [line for line in command([*events, *tried]).stdout.splitlines() if "[dry-run]" in line]
    assert ["default/tried" in line for line in rehearsed] == [True, True]
    assert "tried" not in command([*events, *tried], "--mode", "enforce").stdout
    assert "gone" not in command([*events, *tried], "--mode", "dry-run").stdout


def test_a_program_gets_no_sentence(command: Invoke) -> None:
    nothing = command([], "-o", "json")
    assert (nothing.stdout, nothing.stderr) == ("", "")
