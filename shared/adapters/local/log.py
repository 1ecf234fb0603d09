"""Reading a container's log, also while it grows: from a line or a time on, with the times of its lines."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from shared.adapters.local.log_times import LogTimes, read_times, times_file
from shared.adapters.local.pods import LocalPods
from shared.adapters.local.stored_pod import StoredPod
from shared.errors import Refused

_POLL_S = 0.1
_PIECE_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 20
"""How far the begin of a line is looked for: a container may write a line, or a hole, of any length."""


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Which part of a log is wanted, and how."""

    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False


def log_of(stored: StoredPod, container: str, *, previous: bool = False) -> Path:
    """Return the log file of a container, or of the previous pod of this name; by default of the only container.

    Raises:
        Refused: no such container, none named among several, or there is no log.
    """
    pod = stored.record.pod
    names = sorted(log.stem for log in stored.folder.previous.glob("*.log")) if previous else _containers(stored)
    if previous and not names:
        raise Refused(
            f"pod {pod.key}: no previous log: no detached pod of this name has ended before it", reason="not_found"
        )
    if not container and len(names) != 1:
        raise Refused(f"pod {pod.key} has containers {', '.join(names)}: choose one with -c", reason="ambiguous")
    chosen = container or names[0]
    if chosen not in names:
        raise Refused(f"pod {pod.key}: no container {chosen!r}; it has {', '.join(names)}", reason="not_found")
    path = stored.folder.previous / f"{chosen}.log" if previous else stored.folder.log(chosen)
    if not path.exists():
        raise Refused(f"pod {pod.key}: no log, it runs in the foreground of a terminal", reason="not_found")
    return path


def _containers(stored: StoredPod) -> list[str]:
    return [run.name for run in stored.record.runs]


def read_log(path: Path, choice: LogChoice, growing: Callable[[], bool]) -> Iterator[bytes]:
    """The log piece by piece, for as long as it grows."""
    with path.open("rb") as file:
        file.seek(_start(file, path, choice))
        pieces = _Stamped(path) if choice.timestamps else None
        while True:
            more = growing()
            if os.fstat(file.fileno()).st_size < file.tell():  # its bound was met: it has begun anew
                file.seek(0)
                pieces = _Stamped(path) if pieces else None
            while piece := file.readline(_PIECE_BYTES) if pieces else file.read(_PIECE_BYTES):
                yield pieces.stamped(piece, file) if pieces else piece
            if not more:  # looked at before the last read: nothing was written in between
                return
            time.sleep(_POLL_S)


def runs_on(pods: LocalPods, uid: str) -> bool:
    """Return whether a pod exists and has not finished."""
    stored = pods.get(uid)
    return stored is not None and not stored.status.finished


class _Stamped:
    """Lines of a log with their times before them; a line that comes in pieces has one."""

    def __init__(self, path: Path) -> None:
        self._path, self._within = path, False
        self._times, self._mark = LogTimes(), ""

    def stamped(self, piece: bytes, file: BinaryIO) -> bytes:
        within, self._within = self._within, not piece.endswith(b"\n")
        return piece if within else self._time(file).encode() + b" " + piece

    def _time(self, file: BinaryIO) -> str:
        end = file.tell()
        if end > self._times.known_bytes:  # it has grown since
            self._read_again(file)
        at_ms = self._times.time_ms(end)
        at_ms = _last_write_ms(file) if at_ms is None else at_ms
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _read_again(self, file: BinaryIO) -> None:
        """Read the index if it was written since: it is long, and asked for at every line that it does not know."""
        if (mark := _mark(times_file(self._path))) != self._mark:
            self._mark, self._times = mark, _times_of(self._path, file)


def _mark(path: Path) -> str:
    """Return a value that changes whenever a file is written; empty without the file."""
    try:
        facts = path.lstat()
    except OSError:
        return ""
    return f"{facts.st_mtime_ns} {facts.st_size}"


def _times_of(path: Path, file: BinaryIO) -> LogTimes:
    """Return the index of a log; empty if the index is longer than the log, because it then describes an earlier
    one."""
    times = read_times(path)
    return times if times.known_bytes <= os.fstat(file.fileno()).st_size else LogTimes()


def _start(file: BinaryIO, path: Path, choice: LogChoice) -> int:
    """Where the wanted part begins: the later of both bounds."""
    begins = [0]
    if choice.tail_lines is not None:
        begins.append(_tail_start(file, choice.tail_lines))
    if choice.since is not None:
        begins.append(_since_start(file, _times_of(path, file), choice.since))
    return max(begins)


def _since_start(file: BinaryIO, times: LogTimes, since: datetime) -> int:
    """Return the start of the first line that was ended at that time or later.

    Unwatched output counts with the time of the last write: it is left out only if that was earlier.
    """
    since_ms = int(since.timestamp() * 1000)
    before = times.length_before(since_ms)
    end = file.seek(0, os.SEEK_END)
    if before == times.known_bytes and _last_write_ms(file) < since_ms:
        return end
    return _line_start(file, min(before, end))


def _line_start(file: BinaryIO, position: int) -> int:
    """Where the line begins in which a position is; of one that is too long, where the bound is."""
    stop = max(0, position - MAX_LINE_BYTES)
    while position > stop:
        size = min(_PIECE_BYTES, position - stop)
        file.seek(position - size)
        if (at := file.read(size).rfind(b"\n")) >= 0:
            return position - size + at + 1
        position -= size
    return stop


def _last_write_ms(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_mtime_ns // 1_000_000


def _tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last lines begin, found from the end; a last line without its end counts."""
    position = end = file.seek(0, os.SEEK_END)
    if lines == 0:
        return end
    left, stop = lines, max(0, end - lines * MAX_LINE_BYTES)
    while position > stop:
        size = min(_PIECE_BYTES, position - stop)
        position -= size
        file.seek(position)
        piece = file.read(size)
        at = len(piece)
        while (at := piece.rfind(b"\n", 0, at)) >= 0:
            if position + at == end - 1:  # the end of the last line begins no other
                continue
            left -= 1
            if left == 0:
                return position + at + 1
    return stop
