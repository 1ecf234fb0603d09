"""`keep_capped` bounds logs: a log that is too long is rotated once."""

import asyncio
import os
import stat
from pathlib import Path

import structlog

from shared.adapters.local.log_times import kept_aside, times_file

log = structlog.get_logger()

MAX_LOG_BYTES = 8 << 20
"""Longest log of a process; with the one kept aside it takes twice as much."""
MAX_POD_LOG_BYTES = 32 << 20
"""The same of a container of a pod: what it prints must not fill the disk on which the ledger lies."""
LOOK_S = 2.0


async def keep_capped(state_dir: Path) -> None:
    """Look at all logs in a state folder for ever; a look that fails is said once, and made again."""
    said = ""
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            await asyncio.to_thread(cap_all, state_dir)
            said = ""
        except OSError as error:  # an end of this task would be the end of `sublet up`
            if (why := str(error)) != said:
                log.warning("log.not_looked_at", state_dir=str(state_dir), why=why)
            said = why


def cap_all(state_dir: Path) -> None:
    """Bound the logs of the services, of qrm's watchdog and of the pods."""
    services = [*_logs_in(state_dir / "logs"), state_dir / "keeper.log"]
    bounds = [(path, MAX_LOG_BYTES) for path in services]
    for pod in _entries(state_dir / "pods"):
        bounds += [(path, MAX_POD_LOG_BYTES) for path in _logs_in(pod / "logs")]
    for path, max_bytes in bounds:
        try:
            cap(path, max_bytes)
        except FileNotFoundError:  # its pod was deleted meanwhile
            continue
        except OSError as error:  # such as a full disk: it has begun anew, without the old one
            log.warning("log.not_kept", log=str(path), why=error.strerror)


def _logs_in(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.suffix == ".log"]


def _entries(folder: Path) -> list[Path]:
    """What is in a folder; nothing where it is none, or has gone: pods are deleted at any moment."""
    # Not `glob`: on Python 3.11 it raises when a folder goes between its two looks at it.
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def cap(path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Where a log is too long, move the last so many bytes of it to `<name>.1`, and let it begin anew.

    It stays the same file: its writer has it open, and appends.

    Raises:
        OSError: it cannot be read or written.
    """
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        facts = os.fstat(handle)
        if stat.S_ISREG(facts.st_mode) and facts.st_size > max_bytes:
            _move(handle, kept_aside(path), facts.st_size - max_bytes, max_bytes)
            times_file(path).unlink(missing_ok=True)  # they are of what went
    finally:
        os.close(handle)


def _move(handle: int, aside: Path, start: int, count: int) -> None:
    try:
        # `O_EXCL` below wants a free name, and on a full disk the copy needs the room of the old one.
        aside.unlink(missing_ok=True)
        kept = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        try:
            while count > 0 and (sent := os.sendfile(kept, handle, start, count)) > 0:
                start, count = start + sent, count - sent
        finally:
            os.close(kept)
    finally:
        os.ftruncate(handle, 0)  # also where there is no room to keep it
