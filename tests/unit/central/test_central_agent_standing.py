"""What a CNR says of its node's agent: a table of verdicts, and writes on change alone."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.lost_nodes.agent_loss import AgentState
from services.central.core.lost_nodes.cnr_conditions import OURS, CnrCondition, agent_state, conditions_of, with_changes
from services.central.core.lost_nodes.verdict import Judged, NodeVerdict, withdrawn

VERDICTS: list[NodeVerdict] = ["freeze", "ready", "suspect", "lost", "kubernetes"]
PODS: list[AgentState | None] = [None, "Ready", "NotReady", "NotFound"]
THEN, NOW = "2023-01-09T06:32:08Z", "2023-01-09T07:00:00Z"

STATES = {
    # verdict: the agent by its pod, of which nothing is known, which is ready, is not, is not there
    "freeze": ("Ready", "Ready", None, "Ready"),
    "ready": ("Ready", "Ready", "NotReady", "Ready"),
    "suspect": ("NotReady", "NotReady", "NotReady", "NotFound"),
    "lost": ("NotReady", "NotReady", "NotReady", "NotFound"),
    "kubernetes": ("NotReady", "NotReady", "NotReady", "NotFound"),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_agent_by_verdict_and_pod(verdict: NodeVerdict) -> None:
    assert tuple(agent_state(verdict, pod, well=True) for pod in PODS) == STATES[verdict]


@pytest.mark.parametrize("pod", PODS)
def test_an_agent_that_is_not_heard_to_be_well_is_not_ready_or_not_known(pod: AgentState | None) -> None:
    assert agent_state("ready", pod, well=False) == "NotReady"
    assert agent_state("freeze", pod, well=False) is None


def facts(rows: list[CnrCondition]) -> dict[str, tuple[str, str]]:
    return {row.type: (row.status, row.reason) for row in rows}


@pytest.mark.parametrize(
    ("verdict", "pod", "expected"),
    [
        ("ready", "Ready", ["False AllAgentsFound", "True AllAgentsReady", "False AgentHeard"]),
        ("ready", "NotReady", ["False AllAgentsFound", "False WithAgentsNotReady", "False AgentHeard"]),
        ("suspect", "Ready", ["False AllAgentsFound", "False WithAgentsNotReady", "True AgentSilent"]),
        ("lost", "NotFound", ["True withAgentsNotFound", "Unknown WithAgentsUnknown", "True AgentSilent"]),
    ],
)
def test_conditions_as_the_older_controller_names_them_and_the_mark(
    verdict: NodeVerdict, pod: AgentState, expected: list[str]
) -> None:
    rows = conditions_of(Judged(verdict, ""), pod, well=True)
    assert [row.type for row in rows] == list(OURS)
    assert [f"{row.status} {row.reason}" for row in rows] == expected


@given(st.sampled_from(VERDICTS), st.sampled_from(PODS), st.booleans())
def test_the_mark_stands_exactly_while_the_resources_are_withdrawn(
    verdict: NodeVerdict, pod: AgentState | None, well: bool
) -> None:
    judged = Judged(verdict, "")
    marks = [row.status for row in conditions_of(judged, pod, well=well) if row.type == "ReclaimedWithdrawn"]
    assert marks == {None: [], True: ["True"], False: ["False"]}[withdrawn(judged)]


def test_words_do_not_move_with_time() -> None:
    one, two = (conditions_of(Judged("lost", why, lost_s), None, well=True) for why, lost_s in (("1 s", 1), ("2 s", 2)))
    assert one == two


Standing = tuple[NodeVerdict, AgentState | None, bool]
"""The verdict, what is known of the agent's pod, and whether it is heard to be well."""
EVERY: list[Standing] = list(itertools.product(VERDICTS, PODS, (True, False)))


def standing(rows: list[dict[str, str]]) -> list[CnrCondition]:
    return [CnrCondition.read(row) for row in rows]


@given(st.sampled_from(EVERY), st.sampled_from(EVERY))
def test_what_stands_already_is_not_written_again_and_a_status_that_stays_keeps_its_time(
    one: Standing, two: Standing
) -> None:
    before = with_changes([], conditions_of(Judged(one[0], ""), one[1], well=one[2]), THEN)
    wanted = conditions_of(Judged(two[0], ""), two[1], well=two[2])
    rows = with_changes(standing(before), wanted, NOW)
    same = facts(standing(before)) | facts(wanted) == facts(standing(before))
    assert bool(rows) == (not same)
    old = {row["type"]: row for row in before}
    for row in rows:
        kept = row["type"] in old and old[row["type"]]["status"] == row["status"]
        assert row["lastTransitionTime"] == (THEN if kept else NOW)
        assert row["lastHeartbeatTime"] == NOW


def test_what_is_not_known_stays_as_it_stands_beside_what_is() -> None:
    lost = standing(with_changes([], conditions_of(Judged("lost", ""), "NotFound", well=False), THEN))
    rows = with_changes(lost, conditions_of(Judged("freeze", ""), "Ready", well=True), NOW)
    assert [(row["status"], row["lastTransitionTime"]) for row in rows] == [
        ("False", NOW),
        ("True", NOW),
        ("True", THEN),
    ]
    assert with_changes(lost, conditions_of(Judged("freeze", ""), None, well=False), NOW) == []


def test_a_condition_that_somebody_took_away_is_written_again() -> None:
    wanted = conditions_of(Judged("ready", ""), "Ready", well=True)
    rows = with_changes([], wanted, THEN)
    assert len(with_changes(standing(rows[:1]), wanted, NOW)) == len(OURS)
