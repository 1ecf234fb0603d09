"""`sublet doctor` as somebody types it beside a cluster."""

import json
import subprocess
import sys
from pathlib import Path

from slow_machines import patience_s

CHECKOUT = Path(__file__).parents[2]
Found = dict[str, dict[str, str]]
"""Findings by check."""


def asked(words: list[str]) -> tuple[int, Found]:
    """Exit code and findings of `sublet doctor`."""
    env = {"NO_PROXY": "*", "PYTHONPATH": str(CHECKOUT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=patience_s(120))
    assert done.stdout, done.stderr
    return done.returncode, {row["check"]: row for row in json.loads(done.stdout)["findings"]}


def doctor(*words: str) -> list[str]:
    return [sys.executable, "-m", "sublet", "doctor", "--output", "json", *words]
