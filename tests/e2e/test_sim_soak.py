"""The simulated machine lives: ten real minutes with `kill -9` of its parts and of NATS in turn; SOAK_S=… for more."""

import itertools
import os
import signal
import time
from pathlib import Path

import pytest
from sim_rig import LiveSim, live_sim

from sublet.sim.run import run_scenario
from sublet.sim.scenario import load_scenario

SOAK_S = float(os.environ.get("SOAK_S", "600"))
PARTS = ("sim", "central", "metrics", "advisor", "qrm", "evictor", "reporter")
NATS = "nats"

pytestmark = pytest.mark.timeout(SOAK_S + 600)


ROUNDS, ROUND_S = 30, 120.0


@pytest.mark.slow
def test_in_a_virtual_hour_of_its_story_nothing_ends_that_should_not() -> None:
    tide = load_scenario("tide")
    rounds = (number * ROUND_S for number in range(ROUNDS))
    steps = tuple(step.model_copy(update={"at_s": step.at_s + at_s}) for at_s in rounds for step in tide.steps)
    assert tide.again_at_s == ROUND_S
    report = run_scenario(tide.model_copy(update={"steps": steps, "again_at_s": None}))
    assert report.problems == []
    # And what it tells of happens: the batch pod that asked for the most goes, once in each round, and nobody else.
    told = [(row.t_s, row.what) for row in report.rows if row.event]
    for phase in ("intended", "created", "succeeded"):
        of_train = [at_s for at_s, what in told if what.startswith(f"{phase} pod/train ")]
        assert [int(at_s // ROUND_S) for at_s in of_train] == list(range(ROUNDS)), phase
    assert len(told) == 3 * ROUNDS


def evictions(sim: LiveSim) -> int:
    return sim.type("events").stdout.count("  intended ")


def kill(sim: LiveSim, part: str) -> None:
    """End a part, and wait until it is back."""
    if part == NATS:
        server = sim.nats_pid()
        os.kill(server, signal.SIGKILL)
        sim.wait_for(lambda: sim.nats_pid() not in (server, 0))
        return
    before = sim.services()[part]
    os.kill(before["pid"], signal.SIGKILL)
    sim.wait_for(lambda: sim.services()[part]["restarts"] > before["restarts"])


@pytest.mark.soak
def test_it_outlives_the_death_of_each_of_its_parts(tmp_path: Path) -> None:
    with live_sim(tmp_path) as sim:
        sim.start("--substrate", "sim")
        assert sim.type("run", "-d", "--load", "2.5", "--name", "work").returncode == 0
        begun_s, kills = time.monotonic(), dict.fromkeys((*PARTS, NATS), 0)
        for part in itertools.cycle(kills):
            kill(sim, part)
            kills[part] += 1
            sim.wait_for(lambda: sim.type("status").returncode == 0)
            if time.monotonic() - begun_s >= SOAK_S and all(kills.values()):
                break
        seen = evictions(sim)
        sim.wait_for(lambda: evictions(sim) > seen)  # the story goes on
        assert " Running " in sim.type("get", "pod/work").stdout
        # Nobody has ended but who was killed, and nothing is lost or doubled.
        restarts = {name: row["restarts"] for name, row in sim.services().items()}
        assert restarts | {NATS: kills[NATS]} == kills
        sim.wait_for(lambda: sim.type("audit").returncode == 0)
        logs = "".join(file.read_text() for file in (sim.state / "logs").glob("*.log"))
        assert "Traceback" not in logs
        print(f"{sum(kills.values())} kills in {time.monotonic() - begun_s:.0f} s, {evictions(sim)} evictions")
        assert sim.stop() == 0
