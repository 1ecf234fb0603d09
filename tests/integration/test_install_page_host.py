"""docs/install.md on a Linux host, typed as printed: this host's cgroups, a copy of the tree, a network of its own."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from printed_page import ROOT, copy_of_tree
from typed_page import Terminals, printed, wait_until_shown

pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"),
]

LINES = printed(ROOT / "docs/install.md", "On a Linux host")
CGROUPS = Path("/sys/fs/cgroup")
SETUP, UP = "make setup", "sudo .venv/bin/sublet up"
SHOWS = {UP: "Sublet is up", "sudo .venv/bin/sublet run --qos reclaimed --name work -- sleep 300": ""}
"""What goes on, and the words that it is waited for."""
SUDO = '#!/bin/sh\nexec "$@"\n'


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Terminals]:
    """`make setup` was done: what it makes is what these tests run in."""
    checkout = copy_of_tree(tmp_path / "checkout", ("Makefile", "services", "shared", "sublet"))
    logs, programs = tmp_path / "logs", tmp_path / "bin"
    logs.mkdir()
    programs.mkdir()
    (programs / "sudo").write_text(SUDO)  # who types is root
    (programs / "sudo").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    env = {
        "PATH": path, "LANG": "C.UTF-8", "HOME": str(tmp_path), "PYTHONPATH": str(checkout),
        "SUBLET_STATE_DIR": str(tmp_path / "state"),
    }  # fmt: skip
    # One network for all terminals: it is that of the shell which the others join.
    terminals = Terminals(checkout, env, logs, lambda line: ["bash", "-c", f"exec {line}"])
    wait_until_shown("up", terminals.begin("unshare --net sh -c 'ip link set lo up; echo up; exec sleep infinity'"))
    inside = ["nsenter", "--target", terminals.pids()[0], "--net"]
    terminals.command = lambda line: [*inside, "bash", "-c", f"exec {line}"]
    try:
        yield terminals
    finally:
        terminals.close()


def test_on_a_host_each_line_does_what_the_page_says_and_ctrl_c_restores_it(host: Terminals) -> None:
    lines = [line for block in LINES for line in block]
    assert lines[0] == SETUP
    assert (host.cwd / ".venv").resolve() == Path(sys.prefix)
    for line in lines[1:]:
        if line in SHOWS:
            wait_until_shown(SHOWS[line], host.begin(line))
        elif "explain" in line:
            host.type_until(line, "pod default/work ")
        else:
            host.type(line)
    assert len(lines) >= 6
    assert host.press_ctrl_c(UP) == 0
    assert [str(group) for pattern in ("sublet", "*/sublet") for group in CGROUPS.glob(pattern)] == []
