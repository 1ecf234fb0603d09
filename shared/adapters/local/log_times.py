"""Records when the lines of a container's log were written: an index next to the log. Standard library only, for the
watcher.

A container writes to its file itself, so that its output outlives its watcher; the index is what the watcher observed.
`<container>.times` holds entries of 16 bytes, a time and the length of the log then: everything before that length had
been written by that time.
"""

import contextlib
import os
import stat
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.adapters.files.replaced import write_whole

MAX_ENTRIES = 1 << 15
"""Longest index, 512 KiB; one that is full keeps every second entry: older times become less exact."""
MAX_PREVIOUS_BYTES = 8 << 20
"""How much of a log is kept for a pod's successor of the same name."""
_ENTRY = struct.Struct("<QQ")  # milliseconds since 1970, bytes
_PRIVATE = 0o600
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class LogTimes:
    """The index as it is read: times in milliseconds since 1970, and lengths in bytes, both ascending."""

    at_ms: Sequence[int] = ()
    lengths: Sequence[int] = ()

    @property
    def known_bytes(self) -> int:
        """How much of the log was seen while it was watched."""
        return self.lengths[-1] if self.lengths else 0

    def time_ms(self, end: int) -> int | None:
        """Return by when the log's first `end` bytes were written; None beyond the index."""
        at = bisect_left(self.lengths, end)
        return self.at_ms[at] if at < len(self.lengths) else None

    def length_before(self, since_ms: int) -> int:
        """Return how much of the indexed log was written before a time."""
        at = bisect_left(self.at_ms, since_ms)
        return self.lengths[at - 1] if at else 0


def times_file(log: Path) -> Path:
    """Where a log's index is."""
    return log.with_suffix(".times")


def kept_aside(log: Path) -> Path:
    """Return where the end of a log is kept that was too long and has restarted."""
    return log.with_name(f"{log.name}.1")


def note_length(log: Path, at_ms: int) -> None:
    """Add the current length of the log to the index, if it has grown since the last entry.

    A failed write is ignored, because a log without times is better than a pod without its watcher.
    """
    with contextlib.suppress(OSError):
        length = log.stat().st_size
        handle = os.open(times_file(log), os.O_RDWR | os.O_CREAT | _NO_LINK, _PRIVATE)
        try:
            count = os.fstat(handle).st_size // _ENTRY.size
            last = os.pread(handle, _ENTRY.size, (count - 1) * _ENTRY.size) if count else b""
            last_ms, known = _ENTRY.unpack(last) if len(last) == _ENTRY.size else (0, 0)
            if length < known:  # its container has cut it off: what is known is about another text
                os.ftruncate(handle, 0)
                count, last_ms = 0, 0
            if length != known:
                # Times ascend, whatever the machine's clock does.
                os.pwrite(handle, _ENTRY.pack(max(at_ms, last_ms), length), count * _ENTRY.size)
        finally:
            os.close(handle)
        if count >= MAX_ENTRIES:
            _write(log, _every_second(read_times(log)))


def read_times(log: Path) -> LogTimes:
    """Return the index of a log; empty if there is none. Entries that do not ascend end it."""
    try:
        with os.fdopen(os.open(times_file(log), os.O_RDONLY | _NO_LINK), "rb") as file:
            text = file.read((MAX_ENTRIES + 1) * _ENTRY.size)
    except OSError:
        return LogTimes()
    at_ms: list[int] = []
    lengths: list[int] = []
    for time_ms, length in _ENTRY.iter_unpack(text[: len(text) // _ENTRY.size * _ENTRY.size]):
        if lengths and (length <= lengths[-1] or time_ms < at_ms[-1]):
            break
        at_ms.append(time_ms)
        lengths.append(length)
    return LogTimes(at_ms, lengths)


def keep_end(log: Path, max_bytes: int = MAX_PREVIOUS_BYTES) -> None:
    """Bound a log that is no longer written: its last whole lines stay, with their times.

    If it has restarted, its earlier part fills it up to the bound, and is then deleted.

    Raises:
        OSError: it cannot be read or written.
    """
    aside = kept_aside(log)
    length, before = log.stat().st_size, _size(aside)
    if before == 0 and length <= max_bytes:
        return
    end = _last(aside, min(before, max(0, max_bytes - length))) + _last(log, min(length, max_bytes))
    if before + length > max_bytes:
        end = end[end.find(b"\n") + 1 :]  # a line that is longer than all that is kept stays as it is
    times = read_times(log)
    if times.known_bytes > length:  # it is about what the log was before it began anew
        times = LogTimes()
    # Less than 0 where more was put before it than went: that was written by the first time that is known.
    gone = length - len(end)
    write_whole(log, end, mode=_PRIVATE)
    first = bisect_right(times.lengths, gone)
    _write(log, LogTimes(times.at_ms[first:], [known - gone for known in times.lengths[first:]]))
    aside.unlink(missing_ok=True)


def _size(path: Path) -> int:
    """Return the length of a regular file; 0 if there is none."""
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return 0
    return facts.st_size if stat.S_ISREG(facts.st_mode) else 0


def _last(path: Path, count: int) -> bytes:
    if count == 0:
        return b""
    with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as file:
        file.seek(-count, os.SEEK_END)
        return file.read(count)


def _every_second(times: LogTimes) -> LogTimes:
    """Return half of the entries, including the last one."""
    first = (len(times.lengths) - 1) % 2
    return LogTimes(times.at_ms[first::2], times.lengths[first::2])


def _write(log: Path, times: LogTimes) -> None:
    entries = (_ENTRY.pack(time_ms, length) for time_ms, length in zip(times.at_ms, times.lengths, strict=True))
    write_whole(times_file(log), b"".join(entries), mode=_PRIVATE)
