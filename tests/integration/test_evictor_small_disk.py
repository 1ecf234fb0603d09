"""A full or read-only disk under the ledger: nobody is evicted until it can be written, and then no fact is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def _fit() -> bool:
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not _fit(), reason="needs a mount namespace: root, or user namespaces")
WHOLE = ["intended", "created", "succeeded"]


def lived(scenario: str, folder: Path) -> list[dict[str, Any]]:
    """What an evictor shows while its disk of 1 MB is not usable, and afterwards."""
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "tests/unit/evictor")))
    words = [*UNSHARE, sys.executable, str(HERE / "small_disk.py"), scenario, str(folder)]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("scenario", "why", "kills", "phases"),
    [
        pytest.param("before", "full", 0, [], id="full from the start"),
        pytest.param("rehearsal", "full", 0, ["intended"], id="full once the intent is written"),
        pytest.param("call", "full", 1, ["intended"], id="full once the pod is on its way out"),
        pytest.param("read-only", "Read-only", 0, [], id="read-only"),
    ],
)
def test_without_a_ledger_that_can_be_written_nobody_is_evicted_and_afterwards_all_is_told(
    tmp_path: Path, scenario: str, why: str, kills: int, phases: list[str]
) -> None:
    broken, after = lived(scenario, tmp_path)
    assert (broken["ok"], broken["kills"], broken["phases"]) == (False, kills, phases)
    assert "eviction ledger" in broken["why"]
    assert broken["conditions"] == ["EvictionLedgerUnavailable"]
    assert why in broken["why"]
    assert (after["ok"], after["why"], after["kills"], after["phases"]) == (True, "", 1, WHOLE)
    assert (after["outbox"], after["conditions"]) == (0, [])
    assert after["calls"].count("evict") == 1
