"""Keep child processes running: start, notice the end, start again with growing pauses, stop in order."""

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

log = structlog.get_logger()

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
STEADY_S = 10.0  # a child that ran this long starts its pauses anew
_PR_SET_PDEATHSIG = 1


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
    process: asyncio.subprocess.Process | None = None
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
            with self.log_file.open("ab") as out:
                self.process = await asyncio.create_subprocess_exec(
                    *self.command, env=dict(self.env), stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out,
                    preexec_fn=die_with_parent, start_new_session=True,
                )  # fmt: skip
            changed()
            code = self.last_code = await self.process.wait()
            if self._stopping.is_set():
                return
            self.restarts += 1
            pause_s = FIRST_PAUSE_S if time.monotonic() - started > STEADY_S else min(pause_s * 2, LONGEST_PAUSE_S)
            log.warning("service.ended", of=self.name, code=code, again_in_s=pause_s, log=str(self.log_file))
            await asyncio.sleep(pause_s)

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        return lines[-1] if lines else "nothing in its log"

    async def stop(self, timeout_s: float) -> None:
        """TERM, wait, KILL."""
        self._stopping.set()
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), timeout_s)
        except TimeoutError:
            log.warning("service.killed", of=self.name, after_s=timeout_s)
            process.kill()
            await process.wait()


def running(pid: int) -> bool:
    """Whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
