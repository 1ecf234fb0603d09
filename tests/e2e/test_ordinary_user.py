"""What the first page of the README says to somebody without root: up, watch an eviction, run a pod of one's own."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_rig import LiveSim, live_sim

SOMEBODY = 64242
README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def sim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSim]:
    # In the system's folder: the one of the tests is closed to other users, as root's.
    home = Path(os.path.realpath("/tmp")) / f"sublet-user-{os.getpid()}"
    home.mkdir(mode=0o700)
    try:
        with live_sim(home, SOMEBODY if os.geteuid() == 0 else None) as started:
            yield started
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_without_root_one_watches_an_eviction_and_runs_a_pod(sim: LiveSim) -> None:
    said = sim.start()
    assert "You are not root, so this machine is a simulated one" in said
    assert "scenario tide" in said
    sim.wait_for(lambda: re.search(r"succeeded +default/train", sim.type("events").stdout))
    rehearsed = sim.type("run", "--dry-run", "--load", "sine:0.5..3:60s", "--name", "work").stdout
    assert rehearsed == "pod/work would be started (dry run)\n"
    assert " work " not in sim.type("get", "pods").stdout
    assert sim.type("run", "-d", "--load", "sine:0.5..3:60s", "--name", "work").stdout == "pod/work started\n"
    sim.wait_for(lambda: re.search(r"work .* Running", sim.type("get", "pods").stdout))
    # The list of pods is the runtime's, the explanation that of the newest sample.
    sim.wait_for(lambda: "runs; " in sim.type("explain", "pod/work").stdout)
    assert sim.type("delete", "pod/work").stdout == "pod/work deleted\n"
    sim.wait_for(lambda: sim.type("status").returncode == 0)
    assert sim.stop() == 0
    assert "stopped; nothing is left" in sim.said()


def test_the_readme_says_these_commands() -> None:
    lines = ("sublet up ", "sublet events --follow", "sublet run -d --load sine:0.5..3:60s --name work")
    page = README.read_text()
    assert [line for line in lines if f"\n{line}" not in page] == []
