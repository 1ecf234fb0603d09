"""Law: once no sample has come for `degrade_after_s`, nothing is offered, whatever else does or does not happen."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.batch_node_offer import BatchNodeOffer
from services.reporter.core.field import Offered
from services.reporter.mid_node_offer import MidNodeOffer
from services.reporter.offer_over_time import ColocationInput
from services.reporter.settings import ReporterSettings
from shared.contracts.sample import NodeReading, NodeSample

GIB = 1 << 30
TICKS = st.lists(st.tuples(st.floats(0.5, 40.0), st.booleans()), min_size=1, max_size=30)
"""Seconds from tick to tick of the reporter, and whether a sample has come since the last one."""


def sample(used_cores: float | None) -> NodeSample:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    node = NodeReading(online_cpus="0-9", cpu_usage_cores=used_cores, memory_total_bytes=10 * GIB,
                       memory_available_bytes=9 * GIB)  # fmt: skip
    return NodeSample(node="n", boot_id="0" * 16, seq=1, sent_at=at, node_reading=node)


def offers(degrade_after_s: float) -> dict[str, Any]:
    mid = {"mode": "static", "static_cpu_percent": 50}
    switched_on = {"enabled": True, "degrade_after_s": degrade_after_s}
    settings = ReporterSettings.model_validate({"batch": switched_on, "mid": switched_on | mid})
    batch, of_mid = BatchNodeOffer(settings), MidNodeOffer(settings)
    return {"batch": lambda seen, now_s: batch.smoothed(seen, Offered(0, 0), now_s), "mid": of_mid.smoothed}


@pytest.mark.parametrize("kind", ["batch", "mid"])
@given(TICKS, st.floats(5.0, 120.0))
def test_nothing_is_offered_once_no_sample_has_come_for_long(
    kind: str, ticks: list[tuple[float, bool]], degrade_after_s: float
) -> None:
    offer, now_s, sampled_s = offers(degrade_after_s)[kind], 0.0, 0.0
    for step_s, sampled in [(0.0, True), *ticks]:
        now_s += step_s
        sampled_s = now_s if sampled else sampled_s
        # The last sample stays where it is, and grows old.
        seen = ColocationInput(None, sample(1.0), now_s - sampled_s, None, in_a_cluster=False)
        offered = offer(seen, now_s)
        if now_s - sampled_s > degrade_after_s:
            assert offered is None
        elif sampled:
            assert offered is not None


@pytest.mark.parametrize("kind", ["batch", "mid"])
@given(st.lists(st.floats(0.5, 40.0), min_size=1, max_size=30), st.floats(5.0, 120.0))
def test_samples_that_do_not_say_what_the_node_uses_are_none(
    kind: str, ticks: list[float], degrade_after_s: float
) -> None:
    offer, now_s = offers(degrade_after_s)[kind], 0.0
    offer(ColocationInput(None, sample(1.0), 0.0, None, in_a_cluster=False), 0.0)
    for step_s in ticks:
        now_s += step_s
        offered = offer(ColocationInput(None, sample(None), 0.0, None, in_a_cluster=False), now_s)
        assert (offered is None) == (now_s > degrade_after_s)
