"""A power cut and a new boot: the history of evictions and an operator's pause stay, what ran is over and not shown."""

import re
from pathlib import Path

from sim_rig import live_sim

TIDE = ("--substrate", "sim", "--scenario", "tide", "--speed", "10")
IDLE = ("--substrate", "sim", "--scenario", "idle")


def test_after_a_reboot_the_history_is_whole_and_the_pods_are_gone(tmp_path: Path) -> None:
    with live_sim(tmp_path) as sim:
        sim.start(*TIDE)
        assert sim.type("run", "-d", "--qos", "shared_cores", "--load", "1", "--name", "work").returncode == 0
        sim.wait_for(lambda: re.search(r"succeeded +default/", sim.type("events").stdout))
        assert sim.type("pause", "-r", "over the weekend").returncode == 0
        before = set(sim.type("events", "-o", "name").stdout.splitlines())
        assert "work" in sim.type("get", "pods").stdout
        sim.kill()
        (sim.state / "boot").write_text("0f4b0a52-0000-4000-8000-000000000001\n")
        assert "work" not in sim.type("get", "pods").stdout
        said = sim.start(*IDLE)
        assert "this machine has started anew since" in said
        sim.wait_for(lambda: sim.type("audit").returncode == 0)
        assert before <= set(sim.type("events", "-o", "name").stdout.splitlines())
        assert "evictions paused" in sim.type("status").stdout
        assert "work" not in sim.type("get", "pods").stdout
        assert sim.stop() == 0
        assert (sim.state / "ledger.db").exists()
