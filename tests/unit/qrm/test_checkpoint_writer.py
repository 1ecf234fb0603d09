"""Checkpoints behind the passes: nothing waits for the disk, the newest wins, and a clean stop loses none."""

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from test_placement import advise

from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.adapters.checkpoint.writer import CheckpointWriter
from services.qrm.conditions import Conditions
from shared.contracts.advice import PoolAdvice

ADVICE = advise(share=2, reclaim=46)
FAILED = "CheckpointFailed"


class Disk(CheckpointFile):
    """Keeps what it is given, once it is let."""

    def __init__(self, folder: Path, *, idle: bool = True) -> None:
        super().__init__(folder, "n1")
        self.kept: list[str] = []
        self.began, self.idle = threading.Event(), threading.Event()
        self.trouble: OSError | None = None
        if idle:
            self.idle.set()

    def save(self, advice: PoolAdvice, pools: Mapping[str, str], pods: Mapping[str, str] | None = None) -> None:
        self.began.set()
        self.idle.wait()
        if self.trouble:
            raise self.trouble
        self.kept.append(pools["share"])


def reported_to(conditions: Conditions) -> "partial[None]":
    return partial(conditions.set, FAILED)


def offer(writer: CheckpointWriter, share: str) -> None:
    writer.offer(ADVICE, {"share": share}, {})


async def at_the_first(folder: Path) -> "tuple[Disk, CheckpointWriter, asyncio.Task[None]]":
    """A disk that is busy with the first checkpoint."""
    disk = Disk(folder, idle=False)
    writer = CheckpointWriter(disk)
    task = asyncio.create_task(writer.run(reported_to(Conditions())))
    offer(writer, "first")
    await asyncio.to_thread(disk.began.wait)
    return disk, writer, task


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_busy_disk_holds_nothing_up_and_gets_the_newest_alone(tmp_path: Path) -> None:
    disk, writer, task = await at_the_first(tmp_path)
    for share in ("second", "third", "last"):
        offer(writer, share)
        await asyncio.sleep(0)
    assert disk.kept == []
    disk.idle.set()
    while len(disk.kept) < 2:
        await asyncio.sleep(0)
    assert disk.kept == ["first", "last"]
    await stop(task)


async def test_a_clean_stop_waits_for_what_is_being_written_and_for_the_newest(tmp_path: Path) -> None:
    disk, writer, task = await at_the_first(tmp_path)
    offer(writer, "last")
    asyncio.get_running_loop().call_soon(disk.idle.set)
    await stop(task)
    assert disk.kept[-1] == "last"


async def test_a_stop_before_anything_was_offered_writes_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    task = asyncio.create_task(CheckpointWriter(disk).run(reported_to(Conditions())))
    await asyncio.sleep(0)
    await stop(task)
    assert disk.kept == []


async def test_a_failure_is_said_until_it_works_again(tmp_path: Path) -> None:
    disk, conditions = Disk(tmp_path), Conditions()
    writer = CheckpointWriter(disk)
    task = asyncio.create_task(writer.run(reported_to(conditions)))
    disk.trouble = OSError(28, "No space left on device")
    offer(writer, "first")
    while not str(conditions):
        await asyncio.sleep(0)
    assert str(conditions) == f"{FAILED}: [Errno 28] No space left on device; a restart would begin at the floor"
    disk.trouble = None
    offer(writer, "second")
    while str(conditions):
        await asyncio.sleep(0)
    assert disk.kept == ["second"]
    await stop(task)


async def test_a_failure_ends_also_where_what_is_on_the_disk_counts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, conditions = CheckpointFile(tmp_path, "n1"), Conditions()
    writer, save = CheckpointWriter(disk), disk.save
    task = asyncio.create_task(writer.run(reported_to(conditions)))
    offer(writer, "0-1")
    while not disk.holds(ADVICE, {"share": "0-1"}, {}):
        await asyncio.sleep(0)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "save", full)
    offer(writer, "0-2")
    while not str(conditions):
        await asyncio.sleep(0)
    monkeypatch.setattr(disk, "save", save)
    offer(writer, "0-1")
    while str(conditions):
        await asyncio.sleep(0)
    await stop(task)
