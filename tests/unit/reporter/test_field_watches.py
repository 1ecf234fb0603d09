"""What a field does not watch makes nothing of it urgent, whatever was written before."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from fixture_types import NewAllocation, NewSample
from present import present

from services.reporter.core.field import FieldView, NumaShare, Offered
from services.reporter.fields import conditions
from services.reporter.registry import known_fields
from shared.contracts.allocation import Condition
from shared.contracts.readiness import ConfigRefusal, ServiceHealth
from shared.contracts.sample import NodeReading

FIELDS = known_fields()


@pytest.fixture
def full(now: datetime, allocation: NewAllocation, sample: NewSample, services: tuple[ServiceHealth, ...]) -> FieldView:
    return FieldView(
        now, allocation(), True, sample(), True, services, batch=Offered(4541, 1 << 30), mid=Offered(1500, 1 << 30)
    )


def test_counters_that_are_on_and_have_no_figures_are_a_condition(full: FieldView) -> None:
    def found(view: FieldView) -> dict[str, str]:
        rows = present(conditions.fragment(view))["status"]["conditions"]
        return {row["type"]: row["message"] for row in rows if row["type"] == "CountersUnmeasured"}

    lacking = replace(full, sample=present(full.sample).model_copy(update={"counters_unmeasured": "no program perf"}))
    assert found(lacking) == {"CountersUnmeasured": "no program perf"}
    assert found(full) == {}
    assert found(replace(lacking, sample_fresh=False)) == {}, "an old sample says nothing of now"


@pytest.fixture
def views(full: FieldView, now: datetime, allocation: NewAllocation, sample: NewSample) -> list[FieldView]:
    """Views that differ from the full one in one thing each."""
    pods, numas, applied = present(full.sample).pods, present(full.sample).numas, present(full.allocation)
    ill = tuple(health.model_copy(update={"ok": False, "why": "x"}) for health in full.services)
    refusal = ConfigRefusal(revision=12, why="x")
    samples = (
        sample(pods=pods[:1]),
        sample(numas=numas[:1]),
        sample(numas=tuple(one.model_copy(update={"memory_free_bytes": 1}) for one in numas)),
        sample(numas=tuple(one.model_copy(update={"memory_total_bytes": 1}) for one in numas)),
        sample(numas=tuple(one.model_copy(update={"extra": {}}) for one in numas)),
        sample(unmeasured_applications="x"),
        sample(counters_unmeasured="x"),
        sample(node_reading=NodeReading(online_cpus="0-47", cpu_usage_cores=9.0)),
    )
    allocations = (
        allocation(status="held"),
        allocation(conditions=()),
        allocation(conditions=(Condition(type="SmallMachine", message="said otherwise"),)),
        allocation(pods=applied.pods[:1]),
        allocation(pools=applied.pools[1:]),
        allocation(reclaimed_cpu_millis=1, reclaimed_memory_bytes=1, seq=8),
    )
    others: list[dict[str, Any]] = [
        {"now": now.replace(hour=13)}, {"allocation_fresh": False}, {"sample_fresh": False}, {"services": ill},
        {"services": tuple(one.model_copy(update={"config_refused": refusal}) for one in full.services)},
        {"services": tuple(one.model_copy(update={"why": "x"}) for one in full.services)},
        {"offered": Offered(1, 1)}, {"batch": None}, {"batch_by_numa": {0: NumaShare(1, 1)}},
        {"batch_by_numa": {0: NumaShare(2, 2)}}, {"batch_by_numa": {0: NumaShare(2, None)}}, {"mid": None},
        {"node_unread": ("x",)}, {"node_unread": ("y",)}, {"conditions": (Condition(type="X", message="x"),)},
        {"allocation": None}, {"sample": None},
    ]  # fmt: skip
    changes = [*others, *({"sample": one} for one in samples), *({"allocation": one} for one in allocations)]
    return [full, *(replace(full, **change) for change in changes)]


@pytest.mark.parametrize("name", [name for name, field in FIELDS.items() if field.watches is not None])
def test_what_a_field_does_not_watch_makes_nothing_urgent(name: str, views: list[FieldView]) -> None:
    field = FIELDS[name]
    watched = present(field.watches)
    settings, fragments = field.settings(), [field.fragment(view, field.settings()) for view in views]
    for before in fragments:
        urgent = [field.urgent(before, now, settings) for now in fragments]
        for one, first in enumerate(views):
            same = [other for other, view in enumerate(views) if watched(view) == watched(first)]
            assert {urgent[other] for other in same} == {urgent[one]}, same
