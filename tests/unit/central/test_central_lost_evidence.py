"""Evidence of bus and API server: what is not certain counts as nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from services.central.core.heartbeats.readiness import Assessment, Standing
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.nodes import AgentSeen, LeaseSeen, NodeSeen
from services.central.core.view.evidence import ClusterObservation, LostEvidence

RULES = Rules()
NODE = NodeSeen("n1", "u1", {}, ready=True, offered=frozenset())
DEAD = AgentSeen("n1", "sublet-system/agent", ready=False)


class Looks:
    """Looks at one node that is silent since 0; each lasts until the next one."""

    def __init__(self) -> None:
        self.evidence = LostEvidence(40)

    def __call__(
        self, t_s: float, *, node: NodeSeen = NODE, agents: Sequence[AgentSeen] | None = (DEAD,),
        renewed: Literal[True] | str = True, silent_s: float | None = None, bus_well: bool = True,
        api_age_s: float | None = 0.0, suspect: str = "",
    ) -> Judged:  # fmt: skip
        leases = [LeaseSeen("n1", str(t_s) if renewed is True else renewed)]
        standing = Standing("late", "", t_s if silent_s is None else silent_s)
        assessment = Assessment({"n1": standing}, suspect)
        seen = ClusterObservation({"n1": node}, agents, leases, assessment, bus_well=bus_well, api_age_s=api_age_s)
        return self.evidence.judge_all(seen, t_s, RULES)["n1"]


@pytest.fixture
def look() -> Looks:
    """A node and its agent as they were well."""
    looks = Looks()
    looks(0.0, agents=[AgentSeen("n1", "sublet-system/agent", ready=True)])
    return looks


def test_a_silent_node_with_a_dead_agent_is_lost_since_both_hold(look: Looks) -> None:
    look(100.0)
    found = look(400.0)
    assert (found.verdict, found.lost_s) == ("lost", 300.0)
    assert look(500.0, silent_s=40.0).lost_s == 40.0


def test_a_dead_agents_pod_that_is_deleted_starts_no_new_clock(look: Looks) -> None:
    look(100.0)
    assert look(400.0, agents=()).lost_s == 300.0


def test_one_ready_agent_is_enough(look: Looks) -> None:
    found = look(400.0, agents=[DEAD, AgentSeen("n1", "sublet-system/new", ready=True)])
    assert found.verdict == "suspect"


@pytest.mark.parametrize(
    "missing",
    [
        {"bus_well": False},
        {"suspect": "central has just started"},
        {"api_age_s": None},
        {"api_age_s": RULES.api_max_age_s + 1},
        {"agents": None},
        {"node": NodeSeen("n1", "u1", {}, ready=None, offered=frozenset())},
    ],
    ids=str,
)
def test_what_is_not_known_freezes(look: Looks, missing: dict[str, Any]) -> None:
    look(100.0)
    assert look(4000.0, **missing).verdict == "freeze"


def test_clocks_begin_anew_after_a_time_in_which_the_api_server_was_away(look: Looks) -> None:
    look(100.0)
    assert look(1000.0).lost_s == 900.0
    look(2000.0, api_age_s=RULES.api_max_age_s + 1)
    assert look(3000.0).lost_s == 0.0


def test_a_lease_that_does_not_change_means_that_the_node_is_gone_whatever_its_clock_says(look: Looks) -> None:
    look(100.0, renewed="2999-01-01")
    assert look(139.0, renewed="2999-01-01").verdict == "lost"
    assert look(141.0, renewed="2999-01-01").verdict == "kubernetes"
    assert look(142.0, renewed="1999-01-01").verdict == "lost"
    assert look(143.0, node=NodeSeen("n1", "u1", {}, ready=False, offered=frozenset())).verdict == "kubernetes"


def test_a_lease_tells_how_its_nodes_clock_is_set(look: Looks) -> None:
    look(100.0, renewed="2026-01-01T00:10:00.5Z")
    assert look.evidence.node_time("n1", 107.0) == datetime(2026, 1, 1, 0, 10, 7, 500_000, UTC)
    look(110.0, renewed="2026-01-01T00:10:00.5Z")
    assert look.evidence.node_time("n1", 110.0) == datetime(2026, 1, 1, 0, 10, 10, 500_000, UTC)
    assert look.evidence.node_time("n2", 110.0) is None


@pytest.mark.parametrize("written", ["", "soon", "2026-01-01T00:10:00", "9999-12-31T23:59:59Z"])
def test_a_time_that_cannot_be_read_says_nothing_of_a_clock(look: Looks, written: str) -> None:
    look(100.0, renewed=written)
    assert look.evidence.node_time("n1", 107.0) is None
