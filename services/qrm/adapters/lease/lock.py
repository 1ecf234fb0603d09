"""The lock decides who watches the lease of a node: one process at a time, named by its id in the file."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from services.qrm.adapters.lease.file import LOCK, boottime_s
from shared.errors import Unavailable

TRIES = 4  # qrm holds the lock for a moment while it asks whether a watchdog is alive
RETRY_S = 0.125
_POLL_S = 0.05


def acquire_lock(path: Path, tries: int = TRIES) -> int | None:
    """The lock as a file descriptor, with our process id in the file; None: another watchdog has it.

    Raises:
        OSError: the file cannot be opened or written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for tries_left in reversed(range(tries)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tries_left:
                time.sleep(RETRY_S)
            continue
        # The number is for people; only the lock counts, and the kernel releases it when its process ends.
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor
    os.close(descriptor)
    return None


def is_locked(path: Path) -> bool:
    """Whether a process, of this life of the agent or an earlier one, has the lock."""
    try:
        # No O_CREAT: a check must not leave a file behind.
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two concurrent checks do not take each other for a watchdog.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive_lock(state_dir: Path, patience_s: float) -> Iterator[None]:
    """Have the lock as a watchdog has it: meanwhile no watchdog writes to this node.

    Raises:
        Unavailable: another one has it, for longer than we wait; or the folder cannot be written.
    """
    path, end_s = state_dir / LOCK, boottime_s() + patience_s
    try:
        # In boot time, as the lease, so the wait is bounded even if the clock is set meanwhile.
        while (descriptor := acquire_lock(path, tries=1)) is None:
            if boottime_s() >= end_s:
                raise Unavailable(f"{path}: still held after {patience_s:g} s; an agent's pod runs on this node",
                                  reason="agents")  # fmt: skip
            time.sleep(_POLL_S)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from error
    try:
        yield
    finally:
        os.close(descriptor)
