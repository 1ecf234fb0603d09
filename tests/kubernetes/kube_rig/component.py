"""A program of the cluster as a test handles it: started, killed, stopped in its tracks, started again."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from rig.packages import RigMissing
from slow_machines import patience_s

START_LIMIT_S, STOP_LIMIT_S = patience_s(60.0), patience_s(20.0)
POLL_S = 0.05
_LAST_WORDS = 3000


class Place(Protocol):
    """Where programs run."""

    def command(self, words: Sequence[str | Path]) -> list[str]:
        """The words that run a program there; it ends with the thread that starts it."""


class Component:
    """One program; it ends with the thread that starts it, however that ends."""

    def __init__(
        self, place: Place, words: Sequence[str | Path], log: Path, ready: Callable[[], bool], *, tries: int = 1
    ) -> None:
        self.words = list(words)
        """The command line; what a test changes holds from the next start."""
        self.log = log
        self._place = place
        self._ready = ready
        self._tries = tries
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """As its log is called."""
        return self.log.stem

    @property
    def pid(self) -> int | None:
        """None: it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it answers.

        Raises:
            RigMissing: it did not come up; with its last words.
        """
        if self.pid is not None:
            raise RuntimeError(f"{self.name} runs already, as process {self.pid}")
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self._place.command(self.words), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until it answers.

        Raises:
            RigMissing: it did not come up; with its last words.
        """
        end, left = time.monotonic() + START_LIMIT_S, self._tries - 1
        while not self._ready():
            if self.pid is None and left > 0:  # as a node's service manager does: what it stands on is not up yet
                left -= 1
                self.start(wait=False)
            elif self.pid is None or time.monotonic() > end:
                how = "ended at its start" if self.pid is None else f"not ready within {START_LIMIT_S:g} s"
                raise RigMissing(f"{self.name}: {how}\n{self.last_words()}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        """End it as an operator would; by force where it does not listen."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End it at once, with no word to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Stop it in its tracks: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-_LAST_WORDS:]

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is None:
            raise RuntimeError(f"{self.name} does not run")
        os.kill(pid, number)
