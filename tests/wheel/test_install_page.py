"""docs/install.md on a laptop, typed as printed: a fresh home folder, a copy of the checkout, a network of its own.

The commands that go on until Ctrl-C are typed each in a terminal of its own, and end when they have shown something.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clean_environment import ROOT

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(900)]

PAGE = ROOT / "docs/install.md"
SECTION = re.compile(r"^## On a laptop.*?\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
GOES_ON = {"sublet up --substrate sim", "sublet status --watch", "sublet events --follow"}
PATIENCE_S, POLL_S = 240.0, 0.2
NEEDS_INDEX = re.compile(r"\b(venv|pip)\b")
"""Lines that reach the package index; all others see the loopback of their own network alone."""


def printed() -> list[list[str]]:
    """The lines of each block of the section."""
    section = SECTION.search(PAGE.read_text())
    assert section is not None
    return [[line for line in block.splitlines() if line] for block in BLOCK.findall(section[1])]


class Laptop:
    """A user's folder and terminals."""

    def __init__(self, folder: Path) -> None:
        self.home, self.checkout = folder / "home", folder / "checkout"
        self.home.mkdir()
        subprocess.run(["git", "-C", ROOT, "checkout-index", "--all", f"--prefix={self.checkout}/"], check=True)
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        state = {"SUBLET_STATE_DIR": str(self.home / ".local/state/sublet")}  # root has another
        self._env = {**kept, **state, "HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self._network = subprocess.Popen(
            ["unshare", "--map-root-user", "--net", "sh", "-c", "ip link set lo up 2>/dev/null; exec sleep infinity"],
            env=self._env,
        )
        self._going_on: dict[str, tuple[subprocess.Popen[str], Path]] = {}

    def type(self, line: str) -> str:
        """Type a line and wait for its end; what it said."""
        done = subprocess.run(
            self._command(line), cwd=self.checkout, env=self._env, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def begin(self, line: str) -> Callable[[], str]:
        """Type a line that goes on; what it has said so far can be asked for."""
        log = self.home / f"terminal-{len(self._going_on)}.txt"
        with log.open("w") as out:
            process = subprocess.Popen(
                self._command(line), cwd=self.checkout, env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                text=True, start_new_session=True,
            )  # fmt: skip
        self._going_on[line] = process, log
        return log.read_text

    def press_ctrl_c(self, line: str) -> int:
        """End a line that goes on; its exit code."""
        process, _ = self._going_on.pop(line)
        os.killpg(process.pid, signal.SIGINT)
        return process.wait(PATIENCE_S)

    def close(self) -> None:
        """End what is left."""
        for process, _ in self._going_on.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._network.kill()
        self._network.wait()

    def _command(self, line: str) -> list[str]:
        active = self.home / "sublet-trial/bin/activate"
        script = f". {active}; exec {line}" if active.exists() and "activate" not in line else line
        inside = ["nsenter", "--target", str(self._network.pid), "--user", "--preserve-credentials", "--net"]
        return [*([] if NEEDS_INDEX.search(line) else inside), "bash", "-c", script]


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    laptop = Laptop(tmp_path)
    try:
        yield laptop
    finally:
        laptop.close()


def wait_until_shown(pattern: str, said: Callable[[], str]) -> None:
    """Wait for words in a terminal, never for a time."""
    end_s = time.monotonic() + PATIENCE_S
    while re.search(pattern, said()) is None:
        assert time.monotonic() < end_s, f"no {pattern!r} in\n{said()[-3000:]}"
        time.sleep(POLL_S)


def wait_until_explained(laptop: Laptop, line: str) -> None:
    """Type a line until it is answered."""

    def answer() -> str:
        try:
            return laptop.type(line)
        except AssertionError:
            return ""

    wait_until_shown("runs; ", answer)


SHOWS = {
    "sublet up --substrate sim": "Sublet is up",
    "sublet status --watch": r"ready +mode enforce",
    "sublet events --follow": r"succeeded +default/",
}


def test_on_a_laptop_each_line_does_what_the_page_says(laptop: Laptop) -> None:
    typed = 0
    for block in printed():
        for line in block:
            if line in GOES_ON:
                wait_until_shown(SHOWS[line], laptop.begin(line))
            elif line.startswith(
                "sublet explain"
            ):  # the list of pods is the runtime's, the explanation the newest sample's
                wait_until_explained(laptop, line)
            else:
                laptop.type(line)
            typed += 1
    assert typed == sum(map(len, printed())) >= 8
    assert laptop.press_ctrl_c("sublet up --substrate sim") == 0
