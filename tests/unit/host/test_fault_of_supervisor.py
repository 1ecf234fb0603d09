"""A supervisor that has itself ended ends `sublet up`, with a word and a code; nobody's pods end with it."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from shared.settings import CommonSettings
from sublet.commands.up import _up
from sublet.host.session import Session
from sublet.instance import Instance


async def _ends() -> None:
    raise RuntimeError("out of luck")


async def _runs() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("name", ["supervise-nats", "supervise-qrm"])
async def test_up_ends_with_a_word_when_a_supervisor_has_died(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SUBLET_STATE_DIR", str(tmp_path / "state"))
    stopped: list[str] = []

    async def start(self: Session) -> None:
        self._tasks += [asyncio.create_task(_runs(), name="supervise-sim"), asyncio.create_task(_ends(), name=name)]

    async def stop(self: Session) -> list[str]:
        stopped.append("pods")
        return []

    monkeypatch.setattr(Session, "start", start)
    monkeypatch.setattr(Session, "stop", stop)
    monkeypatch.setattr("sublet.commands.up.os.umask", lambda _mask: 0)
    assert await _up({"substrate": "sim"}, partial(Session, nats_port=0)) == 1
    said = capsys.readouterr().err
    assert f"{name} has ended (out of luck)" in said
    assert "sublet down" in said
    assert stopped == []


async def test_a_start_does_not_wait_for_a_supervisor_that_has_died(tmp_path: Path) -> None:
    session = Session(CommonSettings(state_dir=tmp_path, substrate="sim"))
    session._tasks.append(task := asyncio.create_task(_ends(), name="supervise-metrics"))
    await asyncio.wait([task])
    with pytest.raises(Exception, match=r"supervise-metrics has ended \(out of luck\)"):
        session._refuse_hopeless()


async def test_a_record_that_cannot_be_written_ends_no_supervisor(tmp_path: Path) -> None:
    (tmp_path / "up.json").mkdir()  # as a full disk: the record cannot take its place
    session = Session(CommonSettings(state_dir=tmp_path, substrate="sim"))
    with capture_logs() as said:
        session._restarted()
    assert [row["event"] for row in said] == ["record.not_written"]


@pytest.mark.parametrize(
    ("uid", "common", "told"),
    [
        pytest.param(0, {"substrate": "host"}, True, id="root on this machine's cgroups"),
        pytest.param(0, {"substrate": "sim"}, False, id="root's simulator in another folder"),
        pytest.param(0, {"substrate": "host", "host_root": "/other"}, False, id="another root of files"),
        pytest.param(1000, {"substrate": "host"}, False, id="another user"),
    ],
)
def test_the_one_sublet_of_the_machine_tells_where_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, common: dict[str, Any], told: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    session = Session(CommonSettings(state_dir=tmp_path / "state", **common), nats_url="nats://me:secret@h:1")
    found: list[Instance] = []
    monkeypatch.setattr("sublet.host.session.advertise", found.append)
    session._advertise()
    assert [(one.state_dir, one.pid, one.nats_server) for one in found] == (
        [(str(tmp_path / "state"), os.getpid(), "h:1")] if told else []
    )
