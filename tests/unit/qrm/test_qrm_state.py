"""Steps of qrm's state: an advice is accepted, handed on, kept for its lease, and left for the floor; nothing else."""

from dataclasses import replace

import pytest
from qrm_world import TUTORIAL_NODE
from test_admit import pod
from test_placement import advise, texts

from services.qrm.core import state as steps
from services.qrm.core.active_advice import ActiveAdvice
from services.qrm.core.placement.arrangement import Arrangement, Node, arrange
from services.qrm.core.placement.pools import Order
from services.qrm.core.state import PassInput, QrmState, accept, lease_floor, step
from shared.contracts.advice import PoolAdvice
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import Refused

ORDER: Order = "reclaim-first"
NODE = Node(TUTORIAL_NODE, {0: 1 << 40, 1: 1 << 40})
FRESH = ActiveAdvice(advise(share=6, reclaim=38, reserve=4), received_s=100.0, lease_until_s=110.0)
SMALLER = Node(Topology.uniform(UniformShape(sockets=1, numa_per_socket=1, cores_per_numa=1, threads=2)), {0: 1 << 40})


@pytest.fixture
def arranging(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """The nodes that an advice was arranged for."""
    arranged: list[Node] = []

    def counted(node: Node, advice: PoolAdvice, order: Order) -> Arrangement:
        arranged.append(node)
        return arrange(node, advice, order)

    monkeypatch.setattr(steps, "arrange", counted)
    return arranged


def test_an_advice_is_arranged_once_and_handed_on(arranging: list[Node]) -> None:
    state, arranged = accept(QrmState(), NODE, FRESH, ORDER)
    state, decision = step(state, PassInput(NODE, 100.0, ORDER, arranged))
    assert (decision.stage, decision.arrangement) == ("applied", arranged)
    assert arranging == [NODE]
    assert texts({"reserve": state.reserve}) == {"reserve": "0-1,12-13"}


def test_what_was_handed_on_does_not_count_once_the_lease_has_ended() -> None:
    state, arranged = accept(QrmState(), NODE, FRESH, ORDER)
    _, decision = step(state.with_lease_until(100.0), PassInput(NODE, 100.0, ORDER, arranged))
    assert decision.stage == "floor"
    assert decision.arrangement == lease_floor(state, NODE)[1]


def test_a_refused_advice_leaves_the_state_as_it_was() -> None:
    state, _ = accept(QrmState(), NODE, FRESH, ORDER)
    with pytest.raises(Refused):
        accept(state, NODE, replace(FRESH, advice=advise(share=40, reclaim=40)), ORDER)
    _, decision = step(state, PassInput(NODE, 100.0, ORDER))
    assert decision.arrangement == arrange(NODE, FRESH.advice, ORDER)


def test_a_machine_that_has_become_too_small_for_the_advice_is_at_its_floor_and_the_stage_stays() -> None:
    state, _ = accept(QrmState(), NODE, FRESH, ORDER)
    state, decision = step(state, PassInput(SMALLER, 100.0, ORDER))
    assert (decision.stage, state.stage) == ("floor", "applied")
    assert "advice 7" in decision.refusal


@pytest.mark.parametrize(("pods_known", "held"), [(False, {"gone": CpuSet.parse("3")}), (True, {})])
def test_before_the_pods_were_ever_read_none_is_known_to_have_gone(pods_known: bool, held: dict[str, CpuSet]) -> None:
    state, _ = step(QrmState(held={"gone": CpuSet.parse("3")}), PassInput(NODE, 0.0, ORDER, pods_known=pods_known))
    assert state.held == held


def test_the_floor_of_the_lease_is_the_same_for_pods_that_start() -> None:
    batch = pod("b", 2, {}, "reclaimed_cores")
    starting = replace(NODE, pods=(batch,), starting={batch.uid})
    _, decision = step(QrmState(), PassInput(starting, 0.0, ORDER))
    assert set(decision.arrangement.starting) == {batch.uid}
    assert not lease_floor(QrmState(), starting)[1].starting


def test_the_floor_of_the_lease_follows_the_machine_and_the_reserve() -> None:
    state, floor = lease_floor(QrmState(), NODE)
    assert lease_floor(state, NODE)[1] is floor, "asked for again it is the same"
    assert lease_floor(state, SMALLER)[1].pools["share"] == SMALLER.topology.all
    reserved = replace(state, reserve=CpuSet.parse("0-3"))
    assert lease_floor(reserved, NODE)[1].pools["reserve"] == CpuSet.parse("0-3")
