"""docs/install.md on a laptop, typed as printed: a fresh home folder, a copy of the checkout, a network of its own.

The commands that go on until Ctrl-C are typed each in a terminal of its own, and end when they have shown something.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clean_environment import ROOT
from typed_page import Terminals, printed, wait_until_shown

pytestmark = [pytest.mark.wheel, pytest.mark.timeout(900)]

LINES = printed(ROOT / "docs/install.md", "On a laptop")
NEEDS_INDEX = re.compile(r"\b(venv|pip)\b")
"""Lines that reach the package index; all others see the loopback of their own network alone."""
SHOWS = {
    "sublet up --substrate sim": "Sublet is up",
    "sublet status --watch": r"ready +mode enforce",
    "sublet events --follow": r"succeeded +default/",
}
"""What goes on, and the words that it is waited for."""


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Terminals]:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    home, checkout, logs = tmp_path / "home", tmp_path / "checkout", tmp_path / "logs"
    home.mkdir()
    logs.mkdir()
    subprocess.run(["git", "-C", ROOT, "checkout-index", "--all", f"--prefix={checkout}/"], check=True)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    state = {"SUBLET_STATE_DIR": str(home / ".local/state/sublet")}  # root has another
    env = {**kept, **state, "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    network = subprocess.Popen(
        ["unshare", "--map-root-user", "--net", "sh", "-c", "ip link set lo up 2>/dev/null; exec sleep infinity"],
        env=env,
    )
    active = home / "sublet-trial/bin/activate"

    def command(line: str) -> list[str]:
        script = f". {active}; exec {line}" if active.exists() and "activate" not in line else line
        inside = ["nsenter", "--target", str(network.pid), "--user", "--preserve-credentials", "--net"]
        return [*([] if NEEDS_INDEX.search(line) else inside), "bash", "-c", script]

    terminals = Terminals(checkout, env, logs, command)
    try:
        yield terminals
    finally:
        terminals.close()
        network.kill()
        network.wait()


def test_on_a_laptop_each_line_does_what_the_page_says(laptop: Terminals) -> None:
    typed = 0
    for line in (line for block in LINES for line in block):
        if line in SHOWS:
            wait_until_shown(SHOWS[line], laptop.begin(line))
        elif line.startswith(
            "sublet explain"
        ):  # the list of pods is the runtime's, the explanation the newest sample's
            laptop.type_until(line, "runs; ")
        else:
            laptop.type(line)
        typed += 1
    assert typed >= 8
    assert laptop.press_ctrl_c("sublet up --substrate sim") == 0
