"""A container does to its log whatever its descriptor allows: whoever reads it is neither held up nor told nonsense."""

import os
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from pods_rig import record

from shared.adapters.local.log import MAX_LINE_BYTES, LogChoice, log_of, read_log
from shared.adapters.local.log_times import MAX_PREVIOUS_BYTES, note_length, read_times
from shared.adapters.local.pods import LocalPods

NOON_MS = 1_767_268_800_000
HOLE_BYTES = 1 << 40
CHOICES = (
    LogChoice(tail_lines=3),
    LogChoice(since=datetime.fromtimestamp(NOON_MS / 1000 + 60, UTC)),
    LogChoice(tail_lines=3, timestamps=True),
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of which something was seen at noon."""
    path = LocalPods(tmp_path).add(record("job")).log("main")
    path.parent.mkdir()
    path.write_bytes(b"said\n" * 10)
    note_length(path, NOON_MS)
    return path


@pytest.mark.parametrize("choice", CHOICES, ids=["tail", "since", "timestamps"])
def test_a_hole_of_a_tebibyte_holds_nobody_up(log: Path, choice: LogChoice) -> None:
    os.truncate(log, HOLE_BYTES)
    note_length(log, NOON_MS + 30_000)
    with log.open("ab") as file:
        file.write(b"end\n")
    note_length(log, NOON_MS + 90_000)
    read = b"".join(islice(read_log(log, choice, lambda: False), 1000))
    assert read.endswith(b"end\n")
    assert len(read) <= 3 * MAX_LINE_BYTES + 100


def test_a_log_that_is_cut_off_and_written_anew_has_the_times_of_what_stands_there(log: Path) -> None:
    os.truncate(log, 0)
    note_length(log, NOON_MS + 1000)
    with log.open("ab") as file:
        file.write(b"anew\n")
    note_length(log, NOON_MS + 2000)
    assert read_times(log).time_ms(5) == NOON_MS + 2000


def test_what_a_successor_keeps_of_a_hole_is_bounded(log: Path, tmp_path: Path) -> None:
    os.truncate(log, HOLE_BYTES)
    store = LocalPods(tmp_path)
    store.find("job").folder.finish()
    store.add(record("job"))
    assert log_of(store.find("job"), "", previous=True).stat().st_size <= MAX_PREVIOUS_BYTES
