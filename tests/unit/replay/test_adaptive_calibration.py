"""The forecast of the policy `adaptive` on recordings: what it claims comes true within a point, for every span."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from present import present

from services.advisor.core.prediction.coverage import SPANS_S
from services.advisor.core.prediction.margin import LearnedMargin
from services.advisor.policies.adaptive import AdaptiveSettings
from sublet.replay.generate import write
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.loaders import all_traces
from sublet.replay.traces.reading import read_recording
from sublet.replay.traces.tenants import Packing

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "examples/traces/web-and-batch.jsonl.gz"
DAYS = ROOT.parent / "shared/data"
"""Public traces that are too large for the repository; where they are not, nothing is tested on them."""
NODES = 6
COLD_S = 600.0
RULES = AdaptiveSettings().rules.learning


@dataclass
class Span:
    """What was claimed for one span and what came true, in all cases."""

    cases: int = 0
    claimed: float = 0.0
    covered: int = 0

    def add(self, claimed: float, is_covered: bool) -> None:
        if claimed:
            self.cases, self.claimed, self.covered = self.cases + 1, self.claimed + claimed, self.covered + is_covered


def spans_of(traces: Iterator[Trace], warm_s: float) -> dict[float, Span]:
    """By span, 0 for the next round: from forecasts and needs alone, not from what the policy says of itself."""
    found = {span_s: Span() for span_s in (0.0, *SPANS_S)}
    for trace in traces:
        state = LearnedMargin()
        for frame in trace.to_replay():
            need, before = frame.load.tenants_cores, state
            state = state.observe(need, frame.at_s, trace.cpus, RULES)
            if before.last.at_s == -math.inf or frame.at_s < warm_s:
                continue
            rise = need - before.last.expected_cores
            found[0.0].add(before.last.claimed_ratio, rise <= before.last.rise_cores)
            for span_s, was, now in zip(SPANS_S, before.horizons, state.horizons, strict=True):
                look = present(was.look)
                if present(now.look).since_s != look.since_s:
                    rise = max(look.largest_cores, need) - look.expected_cores
                    found[span_s].add(look.claim.ratio, rise <= look.claim.rise_cores)
    return found


def made(seed: int, length_s: float) -> Trace:
    text = BytesIO()
    write(text, seed, length_s)
    text.seek(0)
    return read_recording(f"seed-{seed}", text)


def assert_calibrated(spans: dict[float, Span], least_cases: int) -> None:
    """Within a point, or within three standard errors where there are too few cases to tell a point."""
    for span_s, span in spans.items():
        assert span.cases >= least_cases, span_s
        claimed, covered = span.claimed / span.cases, span.covered / span.cases
        error = (claimed * (1 - claimed) / span.cases) ** 0.5
        assert covered == pytest.approx(claimed, abs=max(0.01, 3 * error)), (span_s, claimed, covered, span.cases)


@pytest.mark.parametrize("day", ["planetlab-20110303.csv.xz", "planetlab-20110412.csv.xz"])
def test_on_a_public_day_what_is_claimed_comes_true_within_a_point(day: str) -> None:
    path = DAYS / day
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    spans = spans_of(all_traces([path], "auto", Packing(nodes=NODES, between="phase")), 6 * COLD_S)
    assert_calibrated(spans, 1600)


def test_on_restless_services_what_is_claimed_comes_true_within_a_point() -> None:
    assert_calibrated(spans_of(iter([made(seed, 7200.0) for seed in (101, 202, 303)]), COLD_S), 60)


def test_on_the_shipped_recording_the_claims_are_not_refuted() -> None:
    with SHIPPED.open("rb") as source:
        spans = spans_of(iter([read_recording(SHIPPED.name, source)]), COLD_S)
    assert_calibrated({span_s: span for span_s, span in spans.items() if span.cases >= 10}, 10)
