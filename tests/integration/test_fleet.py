"""A small fleet against a real central over real servers: every verdict is right, and nothing is left behind."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sublet.fleet.plan import FleetPlan
from sublet.fleet.run import run_fleet

pytestmark = pytest.mark.timeout(300)


def test_a_small_fleet_goes_through_all_stages() -> None:
    said: list[str] = []
    report = asyncio.run(run_fleet(FleetPlan(40, period_s=4.0, leaves=2, seconds=5), said.append))
    assert report.well, report.document()
    assert report.verdicts_s
    figures = report.document()
    assert [name for name, figure in figures.items() if figure is None] == []
    assert (figures["nodes"], figures["refused"]) == (40, 0)
    assert any("killed" in line for line in said)
    assert not _ours()


def test_two_centrals_hear_a_fleet_in_two_shards() -> None:
    report = asyncio.run(run_fleet(FleetPlan(40, period_s=4.0, seconds=5, shards=2), lambda _said: None))
    assert report.well, report.document()
    assert report.verdicts_s
    assert len(report.others_cpu_of_a_core) == 1
    assert not _ours()


def test_what_cannot_be_run_is_refused_before_anything_starts() -> None:
    command = [sys.executable, "-m", "sublet", "bench", "fleet", "--nodes", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sublet: --nodes 0: want 1 to 100000\n"


def _ours() -> list[str]:
    """Processes that this one has started and that still run."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in children]
    return [command for command in commands if "fleet" in command or "central" in command]
