"""What the policy `adaptive` offers on recordings, and at what risk: bounds that a change must not cross unseen."""

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sublet.replay.batch import BatchRules
from sublet.replay.contender import policy_of
from sublet.replay.generate import write
from sublet.replay.run import replay
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.reading import read_recording

SHIPPED = Path(__file__).parents[3] / "examples/traces/web-and-batch.jsonl.gz"
HOUR_S = 3600.0


def scores(trace: Trace, *policies: str) -> list[dict[str, Any]]:
    outcome = replay([trace], [policy_of(name) for name in policies], BatchRules())
    return [row.score.figures(outcome.oracle) for row in outcome.rows]


def test_on_the_shipped_recording_it_offers_more_than_canonical_at_no_more_violations() -> None:
    with SHIPPED.open("rb") as source:
        canonical, adaptive = scores(read_recording(SHIPPED.name, source), "canonical", "adaptive")
    assert adaptive["offered_percent"] >= canonical["offered_percent"] + 4
    assert adaptive["violation_ppm"] <= canonical["violation_ppm"]
    assert adaptive["evictions"] < canonical["evictions"]
    assert adaptive["goodput_core_hours"] >= 1.5 * canonical["goodput_core_hours"]


@pytest.mark.parametrize(("seed", "oracle_percent"), [(101, 62.0), (202, 69.0), (303, 65.0)])
def test_on_restless_services_it_keeps_its_bounds(seed: int, oracle_percent: float) -> None:
    """Of the first hour ten minutes are canonical's: most of the violations lie there."""
    made = BytesIO()
    write(made, seed, HOUR_S)
    made.seek(0)
    (found,) = scores(read_recording(f"seed-{seed}", made), "adaptive")
    assert found["oracle_percent"] >= oracle_percent
    assert found["violation_ppm"] <= 700
    # Canonical's own are 44 to 49; those of the cold node are more than half of these.
    assert found["evictions"] <= 22
    assert found["goodput_core_hours"] >= 22
