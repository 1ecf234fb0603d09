"""Keeps child processes running: start, notice the end, restart with growing pauses, stop in order.

A resource shortage does not end the supervision: a failed fork is retried, and a service whose log cannot be written
runs without one.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from shared.adapters.process import UMASK
from sublet.output import printable

log = structlog.get_logger()

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
STEADY_S = 10.0  # a child that ran this long starts its pauses anew
LAST_BYTES, LAST_CHARACTERS = 64 << 10, 600
_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1
_LOG_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def die_with_parent() -> None:
    """In a child before exec: the kernel kills it when its parent is gone, so that nothing outlives a crash."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Child:
    """One supervised process."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    log_file: Path
    restarts: int = 0
    last_code: int | None = None
    early_ends: int = 0
    """Lives in a row that it ended itself before it had run steadily; to be killed is another's doing."""
    process: "subprocess.Popen[bytes] | None" = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self.process.pid if self.process and self.process.returncode is None else None

    async def keep_running(self, changed: Callable[[], None]) -> None:
        """Run it for ever; `changed` is called after every start."""
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            started = time.monotonic()
            process = self._start()
            if process is not None:
                changed()
                # The exit code is kept for `Session`, which gives up at once on a setting that cannot be used.
                self.last_code = await ended(process)
                if self._stopping.is_set():
                    return
                self.restarts += 1
            steady = time.monotonic() - started > STEADY_S
            if process is not None:
                self.early_ends = 0 if steady or (self.last_code or 0) < 0 else self.early_ends + 1
            pause_s = FIRST_PAUSE_S if steady else min(pause_s * 2, LONGEST_PAUSE_S)
            if process is not None:
                log.warning(
                    "service.ended", of=self.name, code=self.last_code, again_in_s=pause_s, log=str(self.log_file)
                )
            await asyncio.sleep(pause_s)

    def _start(self) -> "subprocess.Popen[bytes] | None":
        """A fresh process; None where none can be had now."""
        try:
            with self._output() as out:
                self.process = subprocess.Popen(
                    list(self.command), env=dict(self.env), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                    preexec_fn=die_with_parent, start_new_session=True, umask=UMASK,  # noqa: PLW1509 - one system call
                )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:  # no process, memory or descriptor left
            log.error("service.not_started", of=self.name, why=str(error))
            return None
        return self.process

    @contextlib.contextmanager
    def _output(self) -> Iterator[int]:
        try:
            out = os.open(self.log_file, _LOG_FLAGS, 0o640)
        except OSError as error:
            log.warning("service.without_log", of=self.name, log=str(self.log_file), why=error.strerror)
            # Better without a log than without the service.
            out = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield out
        finally:
            os.close(out)

    def last_words(self) -> str:
        """The last line of its log, as far as a terminal can show it."""
        try:
            with self.log_file.open("rb") as file:
                file.seek(max(0, self.log_file.stat().st_size - LAST_BYTES))
                lines = file.read(LAST_BYTES).decode(errors="replace").splitlines()
        except OSError:
            lines = []
        words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return printable(words)[-LAST_CHARACTERS:] if words else "nothing in its log"

    async def stop(self, timeout_s: float) -> None:
        """TERM, wait, KILL; KILL at once where there is no time."""
        self._stopping.set()
        process = self.process
        if process is None or process.poll() is not None:
            return
        if timeout_s > 0:
            process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended(process), timeout_s)
                return
            log.warning("service.killed", of=self.name, after_s=timeout_s)
        process.kill()
        await ended(process)


async def ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait for a process; its exit code. Needs no thread, and a descriptor only where there is one."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:  # before Linux 5.3, or none left
        while process.poll() is None:
            await asyncio.sleep(_POLL_S)
        return process.returncode
    # A pidfd is readable when its process has ended: no thread waits, and no SIGCHLD handler of the loop is needed.
    loop.add_reader(handle, over.set)
    try:
        while process.poll() is None:
            await over.wait()
            over.clear()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return process.returncode
