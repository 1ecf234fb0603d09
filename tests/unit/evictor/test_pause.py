"""The hand brake: while it is pulled nobody is evicted, at whatever point an eviction is."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from evictor_world import LARGE, MakeNode, overcommitted
from fixture_types import Virtual
from typer.testing import CliRunner

from shared.adapters.files.pause import PauseFile
from shared.contracts.bus.subjects import ask_subject
from shared.contracts.pod import Pod
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from shared.ports import ActionResult
from sublet import cli
from sublet.commands import pause
from sublet.host import brake


def test_while_paused_nothing_begins_and_the_reason_is_shown(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.brake.set("release day")
        async with world.life():
            await world.tick(10)
            assert world.evictor.calls == []
            assert world.story == []
            shown = [c for c in world.state()["conditions"] if c["type"] == "EvictionsPaused"]
            assert shown == [{"type": "EvictionsPaused", "message": "release day"}]
            world.brake.release()
            await world.tick(3)
            assert world.evictor.kills == [LARGE.uid]
            assert not any(c["type"] == "EvictionsPaused" for c in world.state()["conditions"])

    virtual(main())


def test_it_holds_through_a_restart(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.brake.set("by hand")
        for _ in range(2):
            async with world.life():
                await world.tick(4)
        assert world.evictor.calls == []

    virtual(main())


def test_an_eviction_that_has_been_announced_is_called_off(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.rehearsals.extend([ActionResult("unknown")] * 50)
        async with world.life():
            await world.tick(3)
            assert world.story == [("large", "intended")]
            world.brake.set("by hand")
            await asyncio.sleep(6)
        assert world.story == [("large", "intended"), ("large", "cancelled")]
        assert "paused" in world.events[-1].detail
        assert world.evictor.kills == []

    virtual(main())


def test_it_is_looked_at_right_before_the_call(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        rehearse = world.evictor.evict

        async def evict(pod: Pod, **how: Any) -> ActionResult:
            if how.get("dry_run"):
                world.brake.set("in the last moment")
            return await rehearse(pod, **how)

        world.evictor.evict = evict  # type: ignore[method-assign]
        async with world.life():
            await world.tick(4)
        assert world.evictor.kills == []
        assert world.story == [("large", "intended"), ("large", "cancelled")]

    virtual(main())


def test_a_pause_with_an_end_is_over_at_that_time_and_not_before(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, 12, tzinfo=UTC)]
    brake = PauseFile(tmp_path, lambda: now[0])
    brake.set("rebuild\nuntil 2000-01-01T00:00:00+00:00", now[0] + timedelta(hours=2))
    assert brake.why() == "rebuild until 2000-01-01T00:00:00+00:00 (until 2026-01-01 14:00:00 UTC)"
    now[0] += timedelta(hours=1, minutes=59)
    assert brake.why()
    now[0] += timedelta(minutes=1)
    assert brake.why() == ""
    assert not brake.release()


@pytest.mark.parametrize(
    "text",
    ["until friday", "a reason\nuntil friday", "a reason\nuntil 2000-01-01T00:00:00", "until", "x\nuntil \x00", "\n\n"],
)
def test_an_end_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    brake = PauseFile(tmp_path)
    brake.path.write_text(text)
    assert brake.why()


def test_a_brake_that_cannot_be_read_is_pulled(tmp_path: Path) -> None:
    brake = PauseFile(tmp_path)
    brake.path.mkdir()
    assert "directory" in brake.why()


@pytest.fixture
def sublet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("SUBLET_NODE", "node1")
    monkeypatch.setenv("SUBLET_NATS_URL", "nats://127.0.0.1:1")
    return lambda *words: CliRunner().invoke(cli.build({"pause": pause}), list(words), catch_exceptions=False)


@pytest.fixture
def evictor_says(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The evictor's answer to whoever asks over the bus."""

    def says(*conditions: str) -> None:
        @contextlib.asynccontextmanager
        async def connected(_where: object) -> AsyncIterator[MemoryBus]:
            bus = MemoryBus()
            answer = {"conditions": [{"type": kind, "message": "by hand"} for kind in conditions]}
            await bus.serve(ask_subject("node1", "evictor"), lambda _question: json.dumps(answer).encode())
            yield bus

        monkeypatch.setattr(brake, "connected", connected)

    return says


def test_what_the_evictor_confirms_is_said(
    sublet: Callable[..., Any], tmp_path: Path, evictor_says: Callable[..., None]
) -> None:
    evictor_says("EvictionsPaused")
    paused = sublet("pause", "--reason", "release day")
    assert (paused.exit_code, paused.stderr) == (0, "")
    assert "paused on node node1, the evictor says so; go on with: sublet resume" in paused.stdout
    assert PauseFile(tmp_path).why() == "release day"
    evictor_says()
    assert sublet("resume").stdout == "evictions go on on node node1\n"
    assert PauseFile(tmp_path).why() == ""
    again = sublet("resume")
    assert (again.exit_code, again.stdout) == (0, "evictions of node node1 were not paused\n")


def test_a_pause_for_a_duration_says_when_it_ends(
    sublet: Callable[..., Any], tmp_path: Path, evictor_says: Callable[..., None]
) -> None:
    evictor_says("EvictionsPaused")
    paused = sublet("pause", "--reason", "rebuild", "--for", "2h")
    assert "they go on by themselves at " in paused.stdout
    assert PauseFile(tmp_path).why().startswith("rebuild (until ")
    with pytest.raises(Refused, match="'soon' is no duration"):
        sublet("pause", "--for", "soon")


def test_a_pause_that_the_evictor_does_not_see_is_no_pause(
    sublet: Callable[..., Any], tmp_path: Path, evictor_says: Callable[..., None]
) -> None:
    evictor_says("SomethingElse")
    result = sublet("pause")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "are NOT paused" in result.stderr
    assert "SUBLET_STATE_DIR" in result.stderr


def test_a_resume_that_the_evictor_does_not_see_is_none(
    sublet: Callable[..., Any], evictor_says: Callable[..., None]
) -> None:
    evictor_says("EvictionsPaused")
    result = sublet("resume")
    assert (result.exit_code, "STILL paused" in result.stderr) == (1, True)


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_without_an_evictor_it_is_written_and_said_that_nobody_confirms(
    sublet: Callable[..., Any], tmp_path: Path, command: str
) -> None:
    result = sublet(command)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "cannot be asked" in result.stderr
    assert "127.0.0.1:1" in result.stderr
    assert bool(PauseFile(tmp_path).why()) is (command == "pause")
