"""The start of `sublet up`: a child that ends twice ends it with its last words, and it says who is not well."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Until

from shared.contracts.services import NODE_SERVICES, SERVICES
from shared.errors import Unavailable
from shared.settings import CommonSettings
from sublet.commands.up import _up
from sublet.host import readiness, supervise
from sublet.host.readiness import unwell, wait_healthy
from sublet.host.session import Session
from sublet.host.supervise import Child


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(supervise, "LONGEST_PAUSE_S", 0.02)


def child(folder: Path, script: str) -> Child:
    return Child("advisor", ["/bin/sh", "-c", script], {}, folder / "advisor.log")


async def ended_twice(one: Child, until: Until) -> None:
    task = asyncio.create_task(one.keep_running(lambda: None))
    await until(lambda: one.restarts >= 2)
    await one.stop(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_child_that_ends_twice_at_its_start_is_hopeless(tmp_path: Path, until: Until) -> None:
    session = Session(CommonSettings(state_dir=tmp_path, substrate="sim"))
    session.children["advisor"] = one = child(tmp_path, "echo first; printf 'boom \\033[31m\\n\\n'; exit 7")
    await ended_twice(one, until)
    with pytest.raises(Unavailable) as caught:
        session._refuse_hopeless()
    said = str(caught.value)
    assert "advisor has ended" in said
    assert "times at its start, at last with code 7: boom \\x1b[31m; all of it: " in said
    assert str(one.log_file) in said


async def test_one_that_somebody_kills_is_started_again_and_again(tmp_path: Path, until: Until) -> None:
    session = Session(CommonSettings(state_dir=tmp_path, substrate="sim"))
    session.children["advisor"] = one = child(tmp_path, "kill -KILL $$")
    await ended_twice(one, until)
    session._refuse_hopeless()


async def test_one_that_ran_steadily_before_it_ended_is_not_hopeless(
    tmp_path: Path, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "STEADY_S", 0.0)
    one = child(tmp_path, "exit 1")
    await ended_twice(one, until)
    assert one.early_ends == 0


def test_the_last_words_are_bounded(tmp_path: Path) -> None:
    one = child(tmp_path, "")
    assert one.last_words() == "nothing in its log"
    one.log_file.write_bytes(b"x" * 5_000_000 + b"the end\n")
    assert len(one.last_words()) == supervise.LAST_CHARACTERS
    assert one.last_words().endswith("the end")


def health(**failing: str) -> list[dict[str, Any]]:
    return [{"service": name, "ok": name not in failing, "why": failing.get(name, "")} for name in NODE_SERVICES]


def answers(**over: Any) -> dict[str, Any]:
    well: dict[str, Any] = {name: {} for name in SERVICES}
    return {**well, "reporter": {"services": health()}, "central": {"health": {"ok": True}}, **over}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (answers(), {}),
        (answers(qrm=None), {"qrm": "does not answer"}),
        (answers(central=None), {"central": "does not answer"}),
        (answers(central={"health": {"ok": False, "why": "no streams"}}), {"central": "no streams"}),
        (answers(central={"health": "fine"}), {"central": "nothing is heard of its health yet"}),
        (answers(reporter={"services": health(evictor="no fresh sample")}), {"evictor": "no fresh sample"}),
        (answers(reporter={"services": health(qrm="\x1b" + "x" * 999)}), {"qrm": "\\x1b" + "x" * 196}),
        (answers(reporter={"services": "all"}), dict.fromkeys(NODE_SERVICES, "nothing is heard of its health yet")),
        (answers(reporter={"services": [3, None]}), dict.fromkeys(NODE_SERVICES, "nothing is heard of its health yet")),
    ],
)
def test_who_is_not_well_is_named_with_why(given: dict[str, Any], said: dict[str, str]) -> None:
    assert unwell(given) == said


async def test_it_waits_until_all_are_well_and_no_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [answers(qrm=None), answers(qrm=None), answers()]

    async def next_answers(*_: object) -> dict[str, Any]:
        return given.pop(0) if len(given) > 1 else given[0]

    monkeypatch.setattr(readiness, "ask_all", next_answers)
    monkeypatch.setattr(readiness, "ASK_PERIOD_S", 0.0)
    assert await wait_healthy(None, "a") == {}  # type: ignore[arg-type]
    given[:] = [answers(qrm=None)]
    monkeypatch.setattr(readiness, "HEALTHY_TIMEOUT_S", 0.0)
    assert await wait_healthy(None, "a") == {"qrm": "does not answer"}  # type: ignore[arg-type]


async def test_up_does_not_say_that_it_is_up_while_a_service_is_not_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("sublet.commands.up.os.umask", lambda _mask: 0)

    async def start(self: Session) -> None:
        self.unwell = {"qrm": "no advice"}

    async def fault(_self: Session) -> str:
        return "enough"

    async def leave(_self: Session) -> None:
        return

    for name, instead in (("start", start), ("fault", fault), ("leave", leave)):
        monkeypatch.setattr(Session, name, instead)
    await _up({"substrate": "sim"}, partial(Session, nats_port=0))
    out, err = capsys.readouterr()
    assert "Sublet is up" not in out
    assert "not every service is well yet: qrm: no advice; see `sublet status`" in err
