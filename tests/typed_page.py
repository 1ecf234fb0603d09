"""Lines of a page, typed as printed: what goes on until Ctrl-C is typed in a terminal of its own."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATIENCE_S, POLL_S = 240.0, 0.2


def printed(page: Path, heading: str) -> list[list[str]]:
    """The lines of each block of a section, whose heading begins with these words."""
    section = re.search(rf"^## {heading}.*?\n(.*?)(?=^## )", page.read_text(), re.MULTILINE | re.DOTALL)
    assert section is not None, f"{page.name} has no section {heading!r}"
    return [[line for line in block.splitlines() if line] for block in BLOCK.findall(section[1])]


def wait_until_shown(pattern: str, said: Callable[[], str]) -> None:
    """Wait for words in a terminal, never for a time."""
    end_s = time.monotonic() + PATIENCE_S
    while re.search(pattern, said()) is None:
        assert time.monotonic() < end_s, f"no {pattern!r} in\n{said()[-3000:]}"
        time.sleep(POLL_S)


@dataclass
class Terminals:
    """A user's terminals, all with the same folder and the same variables."""

    cwd: Path
    env: Mapping[str, str]
    logs: Path
    """An empty folder for what is said in those that go on."""
    command: Callable[[str], list[str]]
    """How a line is run."""
    _going_on: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def type(self, line: str) -> str:
        """Type a line and wait for its end; what it said."""
        done = subprocess.run(
            self.command(line), cwd=self.cwd, env=self.env, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def type_until(self, line: str, pattern: str) -> None:
        """Type a line again until it answers with these words: the first sample of a new pod takes its time."""

        def answer() -> str:
            try:
                return self.type(line)
            except AssertionError:
                return ""

        wait_until_shown(pattern, answer)

    def begin(self, line: str) -> Callable[[], str]:
        """Type a line that goes on; what it has said so far can be asked for."""
        log = self.logs / f"terminal-{len(self._going_on)}.txt"
        # Whatever runs in the background of a shell ignores Ctrl-C, and so would this; in a terminal it does not.
        command = ["env", "--default-signal=INT", *self.command(line)]
        with log.open("w") as out:
            self._going_on[line] = subprocess.Popen(
                command, cwd=self.cwd, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                text=True, start_new_session=True,
            )  # fmt: skip
        return log.read_text

    def pids(self) -> list[str]:
        """Of what goes on, oldest first."""
        return [str(process.pid) for process in self._going_on.values()]

    def press_ctrl_c(self, line: str) -> int:
        """End a line that goes on; its exit code."""
        process = self._going_on[line]
        os.killpg(process.pid, signal.SIGINT)
        code = process.wait(PATIENCE_S)
        del self._going_on[line]
        return code

    def close(self) -> None:
        """End what is left, the newest first: politely, so that it restores what it changed."""
        for line in reversed(list(self._going_on)):
            try:
                self.press_ctrl_c(line)
            except subprocess.TimeoutExpired:
                os.killpg(self._going_on[line].pid, signal.SIGKILL)
                self._going_on.pop(line).wait()
