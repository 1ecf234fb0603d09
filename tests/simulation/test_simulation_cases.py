"""What the simulation has found once stays found; and a seed gives the same story twice."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.json"))


def simulation(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own: the order of sets must be the same each time, and this process has its own."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(HERE), *arguments]
    return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=200)


def test_the_cases_are_kept() -> None:
    done = simulation("--case", *map(str, CASES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": kept") == len(CASES)


def test_a_seed_gives_the_same_story_twice() -> None:
    first, second = (simulation("--seed", "7") for _ in range(2))
    assert first.stdout.count("\n") > 50
    assert first.stdout == second.stdout
