"""The verdict table of a silent node, row by row and over every combination of evidence."""

from itertools import product

import pytest
from present import present

from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Action, Evidence, NodeVerdict, due, judge, withdrawn

RULES = Rules()
WELL = Evidence(bus_well=True, silent_s=0.0, api_age_s=1.0, agent_ready=True, agent_not_ready_s=0.0, node_stale=False)


def evidence(**changes: float | bool | None) -> Evidence:
    return Evidence(**({name: getattr(WELL, name) for name in Evidence.__slots__} | changes))


SILENT: dict[str, float | bool | None] = {"silent_s": 5000.0}
DEAD: dict[str, float | bool | None] = {"agent_ready": False, "agent_not_ready_s": 5000.0}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        pytest.param({}, "ready", id="heard"),
        pytest.param(SILENT, "suspect", id="silent, agent ready, node alive"),
        pytest.param(SILENT | DEAD, "lost", id="silent, agent dead, node alive"),
        pytest.param(SILENT | DEAD | {"node_stale": True}, "kubernetes", id="silent, agent dead, node gone"),
        pytest.param(SILENT | {"agent_ready": None, "node_stale": True}, "kubernetes", id="whatever its agent"),
        pytest.param(DEAD | {"node_stale": True}, "ready", id="heard, whatever else is said"),
        pytest.param(SILENT | DEAD | {"bus_well": False}, "freeze", id="central suspects the bus"),
        pytest.param({"bus_well": False}, "freeze", id="central suspects the bus, node heard before"),
        pytest.param(SILENT | DEAD | {"api_age_s": None}, "freeze", id="API never answered"),
        pytest.param(SILENT | DEAD | {"api_age_s": 60.1}, "freeze", id="API answered long ago"),
        pytest.param(SILENT | DEAD | {"api_age_s": 60.0}, "lost", id="API answered just in time"),
        pytest.param(DEAD | {"silent_s": None}, "freeze", id="silence not known"),
        pytest.param(SILENT | {"agent_ready": None}, "freeze", id="agent not known"),
        pytest.param(SILENT | DEAD | {"node_stale": None}, "freeze", id="lease not known"),
        pytest.param(DEAD | {"silent_s": 30.0}, "ready", id="not silent for long"),
        pytest.param(DEAD | {"silent_s": 30.1}, "lost", id="late"),
    ],
)
def test_the_table_row_by_row(changes: dict[str, float | bool | None], verdict: NodeVerdict) -> None:
    judged = judge(evidence(**changes), RULES)
    assert judged.verdict == verdict
    assert bool(judged.why) is (verdict != "ready")


@pytest.mark.parametrize(
    ("silent_s", "not_ready_s", "tainted", "pods", "action"),
    [
        (5000.0, 600.0, False, True, "nothing"),
        (600.0, 5000.0, False, True, "nothing"),
        (601.0, 601.0, False, True, "taint"),
        (5000.0, 5000.0, False, True, "taint"),
        (1200.0, 5000.0, True, True, "nothing"),
        (5000.0, 1200.0, True, True, "nothing"),
        (1201.0, 1201.0, True, True, "evict"),
        (1201.0, 1201.0, True, False, "nothing"),
    ],
)
def test_what_is_due_for_a_lost_node_when_both_signs_have_lasted(
    silent_s: float, not_ready_s: float, tainted: bool, pods: bool, action: Action
) -> None:
    judged = judge(evidence(silent_s=silent_s, agent_ready=False, agent_not_ready_s=not_ready_s), RULES)
    assert due(judged, tainted=tainted, has_reclaimed_pods=pods, rules=RULES) == action


SPACE = [
    Evidence(*row)
    for row in product(
        (True, False),
        (None, 0.0, 30.0, 31.0, 601.0, 1201.0, 1e6),
        (None, 0.0, 61.0),
        (None, True, False),
        (0.0, 601.0, 1201.0, 1e6),
        (None, True, False),
    )
]
STATES = list(product((True, False), repeat=2))


def actions(found: Evidence) -> set[str]:
    judged = judge(found, RULES)
    return {due(judged, tainted=tainted, has_reclaimed_pods=pods, rules=RULES) for tainted, pods in STATES}


def test_nothing_is_evicted_without_every_sign_of_a_dead_agent_on_a_living_node() -> None:
    for found in SPACE:
        complete = (
            found.bus_well
            and found.api_age_s == 0.0
            and (found.silent_s or 0) > 1200
            and found.agent_ready is False
            and found.agent_not_ready_s > 1200
            and found.node_stale is False
        )
        assert ("evict" in actions(found)) is complete, found


def test_nothing_is_tainted_on_missing_or_stale_evidence() -> None:
    for found in SPACE:
        known = (
            found.bus_well and found.api_age_s == 0.0 and found.node_stale is False and found.agent_ready is not None
        )
        lasting = (found.silent_s or 0) > 600 and (found.agent_ready or found.agent_not_ready_s > 600)
        assert ("taint" in actions(found)) is bool(known and lasting), found


def test_only_a_node_that_is_heard_is_freed_of_its_taint() -> None:
    for found in SPACE:
        heard = found.bus_well and found.api_age_s == 0.0 and found.silent_s is not None and found.silent_s <= 30
        assert ("untaint" in actions(found)) is heard, found


def test_what_is_offered_is_withdrawn_at_once_and_stays_as_it_is_while_nothing_is_known() -> None:
    for found in SPACE:
        judged = judge(found, RULES)
        want = None if judged.verdict == "freeze" else present(found.silent_s) > 30
        assert withdrawn(judged) is want, found


def test_periods_can_be_shortened_by_configuration() -> None:
    quick = Rules(late_s=1, taint_s=2, evict_s=4)
    judged = judge(evidence(silent_s=5.0, agent_ready=False, agent_not_ready_s=5.0), quick)
    assert due(judged, tainted=False, has_reclaimed_pods=True, rules=quick) == "taint"
    assert due(judged, tainted=True, has_reclaimed_pods=True, rules=quick) == "evict"
