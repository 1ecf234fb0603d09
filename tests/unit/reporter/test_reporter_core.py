"""The node's object as a whole, when it is written, and the node's readiness."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import pytest
from fixture_types import NewAllocation, NewSample
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.reporter.core.field import FieldView, Fragment, NumaShare, Offered, ReportField
from services.reporter.core.health import facts, fold_health
from services.reporter.core.node_object import MOST_PASSED_OVER_S, JudgedView, cnr, fragments, must_write
from services.reporter.core.overcommit.kubelet_binding import KubeletManagers
from services.reporter.registry import known_fields
from shared.build import BUILD
from shared.contracts.allocation import Condition
from shared.contracts.readiness import ConfigRefusal, ServiceHealth

FIELDS = {name: (field, field.settings()) for name, field in known_fields().items()}


@pytest.fixture
def full(now: datetime, allocation: NewAllocation, sample: NewSample, services: tuple[ServiceHealth, ...]) -> FieldView:
    return FieldView(now, allocation(), True, sample(), True, services)


def test_the_object_is_a_custom_node_resource_of_all_fields(full: FieldView) -> None:
    document = cnr("node1", fragments(full, FIELDS))
    assert document["apiVersion"] == "node.katalyst.kubewharf.io/v1alpha1"
    assert document["kind"] == "CustomNodeResource"
    assert document["metadata"] == {"name": "node1"}
    assert set(document["status"]) == {
        "conditions",
        "nodeMetricStatus",
        "resourceAllocatable",
        "resourceCapacity",
        "resources",
        "topologyStatus",
        "topologyZone",
    }
    assert set(document["spec"]) == {"nodeResourceProperties"}


def test_a_missing_allocation_leaves_the_offer_out_and_never_zero(now: datetime, sample: NewSample) -> None:
    document = cnr("node1", fragments(FieldView(now, sample=sample(), sample_fresh=True), FIELDS))
    assert "resourceAllocatable" not in document["status"]
    assert "resources" not in document["status"]


def test_two_fields_that_write_the_same_thing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"status\.taints"):
        cnr("node1", {"one": {"status": {"taints": []}}, "two": {"status": {"taints": []}}})


def _write(before: FieldView | None, now: FieldView, since_s: float = 1.0) -> bool:
    written = None if before is None else fragments(before, FIELDS)
    return must_write(FIELDS, written, fragments(now, FIELDS), since_written_s=since_s, refresh_s=60.0)


def test_what_a_service_says_of_its_configuration_is_passed_on_and_makes_a_new_readiness() -> None:
    refusal = ConfigRefusal(revision=12, why="qrm.lease_s = -1")
    told = ServiceHealth(service="qrm", ok=True, config_revision=11, config_refused=refusal)
    (folded,) = fold_health(("qrm",), {"qrm": (told, 1.0)}, max_age_s=10)
    assert (folded.config_revision, folded.config_refused) == (11, refusal)
    others = ({"config_refused": None}, {"config_revision": 12})
    assert all(facts((folded,)) != facts((folded.model_copy(update=other),)) for other in others)


def test_the_first_object_is_written(full: FieldView) -> None:
    assert _write(None, full)


def test_the_same_object_at_another_time_is_never_written_again(full: FieldView, now: datetime) -> None:
    later = FieldView(now.replace(hour=13), full.allocation, True, full.sample, True, full.services)
    assert not _write(full, later)
    assert not _write(full, later, since_s=3600)


def test_usage_that_moves_waits_for_the_refresh(full: FieldView, sample: NewSample) -> None:
    reading = present(full.sample).node_reading.model_copy(update={"cpu_usage_cores": 3.0})
    moved = FieldView(full.now, full.allocation, True, sample(node_reading=reading), True, full.services)
    assert not _write(full, moved)
    assert _write(full, moved, since_s=60)


def test_a_fall_of_the_offer_is_written_at_once(full: FieldView, allocation: NewAllocation) -> None:
    assert _write(
        full, FieldView(full.now, allocation(reclaimed_cpu_millis=41_999), True, full.sample, True, full.services)
    )


def test_an_allocation_gone_stale_is_written_at_once_with_the_same_offer(full: FieldView) -> None:
    stale = FieldView(full.now, full.allocation, False, full.sample, True, full.services)
    assert _write(full, stale)
    assert fragments(stale, FIELDS)["reclaimed"] == fragments(full, FIELDS)["reclaimed"]


def test_a_view_that_differs_in_time_and_ages_alone_is_not_judged_again_for_a_while(
    full: FieldView, now: datetime
) -> None:
    judged = JudgedView(full, at_s=100.0)
    aged = tuple(health.model_copy(update={"input_age_s": 7.0}) for health in full.services)
    later = replace(full, now=now.replace(hour=13), services=aged)
    assert judged.stands(later, 100.0 + MOST_PASSED_OVER_S - 0.1)
    assert not judged.stands(later, 100.0 + MOST_PASSED_OVER_S)


def test_fields_that_cannot_be_urgent_are_not_made_between_two_refreshes(
    full: FieldView, allocation: NewAllocation, sample: NewSample
) -> None:
    made: list[str] = []

    def counted(name: str, field: ReportField[Any]) -> ReportField[Any]:
        def fragment(view: FieldView, settings: Any) -> Fragment | None:
            made.append(name)
            return field.fragment(view, settings)

        return replace(field, fragment=fragment)

    counting = {name: (counted(name, field), settings) for name, (field, settings) in FIELDS.items()}
    written = fragments(full, FIELDS)
    judged = JudgedView.of(full, counting, 100.0)
    next_sample = replace(
        full, sample=sample(seq=13), allocation=allocation(seq=8, reclaimed_memory_bytes=195_257_901_057)
    )
    after = present(judged.passed_over(next_sample, counting, written, 101.0))
    assert set(made) & {"node_metrics", "topology", "conditions"} == set()
    assert "reclaimed" in made
    made.clear()
    ended = replace(next_sample, sample=sample(seq=14, pods=()))
    assert after.passed_over(ended, counting, written, 102.0) is None
    assert "topology" in made
    assert after.passed_over(next_sample, counting, written, 100.0 + MOST_PASSED_OVER_S) is None, "all, once a while"


def test_a_fall_is_seen_beside_fields_that_are_passed_over(full: FieldView, allocation: NewAllocation) -> None:
    judged, written = JudgedView.of(full, FIELDS, 100.0), fragments(full, FIELDS)
    fallen = replace(full, allocation=allocation(reclaimed_cpu_millis=41_999))
    assert judged.passed_over(fallen, FIELDS, written, 100.1) is None


def test_a_view_that_brings_anything_new_is_judged_at_once(
    full: FieldView, allocation: NewAllocation, sample: NewSample
) -> None:
    ill = tuple(health.model_copy(update={"ok": False}) for health in full.services)
    offer = Offered(cpu_millis=1, memory_bytes=1)
    news: list[dict[str, Any]] = [
        {"allocation": allocation(reclaimed_cpu_millis=41_999)},
        {"allocation_fresh": False},
        {"sample": sample(seq=900)},
        {"sample_fresh": False},
        {"services": ill},
        {"offered": offer},
        {"batch": offer},
        {"batch_by_numa": {0: NumaShare(1, 1)}},
        {"mid": offer},
        {"bearable": (("cpu", 1.5),)},
        {"binding": KubeletManagers("static")},
        {"node_unread": ("x",)},
        {"build": BUILD},
        {"conditions": (Condition(type="X", message=""),)},
    ]
    assert {name for one in news for name in one} == {field.name for field in fields(FieldView)} - {"now"}
    assert not [one for one in news if JudgedView(full, at_s=100.0).stands(replace(full, **one), 100.1)]


WELL = ServiceHealth(service="qrm", ok=True, input_age_s=0.5)


@pytest.mark.parametrize(
    ("heard", "ok", "why", "input_age_s"),
    [
        pytest.param(None, False, "not heard of yet", None, id="never heard"),
        pytest.param((WELL, 2.0), True, "", 2.5, id="heard just now: ages add up"),
        pytest.param((WELL, 10.0), True, "", 10.5, id="at the bound"),
        pytest.param((WELL, 10.01), False, "silent for more than 10 s", 10.51, id="silent"),
        pytest.param((WELL.model_copy(update={"ok": False, "why": "no pods"}), 1.0), False, "no pods", 1.5, id="ill"),
    ],
)
def test_health_folds_with_its_age(
    heard: tuple[ServiceHealth, float] | None, ok: bool, why: str, input_age_s: float | None
) -> None:
    (folded,) = fold_health(["qrm"], {} if heard is None else {"qrm": heard}, max_age_s=10.0)
    assert (folded.service, folded.ok, folded.why) == ("qrm", ok, why)
    assert folded.input_age_s == (None if input_age_s is None else pytest.approx(input_age_s))


NAMES = st.lists(st.sampled_from(["metrics", "advisor", "qrm", "evictor", "reporter"]), unique=True)
HEARD = st.dictionaries(
    st.sampled_from(["metrics", "advisor", "qrm"]),
    st.tuples(st.builds(ServiceHealth, service=st.just("x"), ok=st.booleans()), st.floats(0, 100)),
)


@given(NAMES, HEARD, st.floats(1, 50))
def test_every_expected_service_is_listed_and_silence_is_never_health(
    expected: list[str], heard: dict[str, tuple[ServiceHealth, float]], max_age_s: float
) -> None:
    folded = fold_health(expected, heard, max_age_s=max_age_s)
    assert [health.service for health in folded] == expected
    for health in folded:
        entry = heard.get(health.service)
        if entry is None or entry[1] > max_age_s:
            assert not health.ok
        assert health.ok or health.why or (entry and not entry[0].ok)


@given(HEARD, st.floats(0, 100))
def test_the_passing_of_time_alone_makes_no_new_readiness_while_nobody_falls_silent(
    heard: dict[str, tuple[ServiceHealth, float]], waited_s: float
) -> None:
    later = {name: (health, age + waited_s) for name, (health, age) in heard.items()}
    expected = sorted(heard)
    one, two = (facts(fold_health(expected, seen, max_age_s=1000)) for seen in (heard, later))
    assert one == two
