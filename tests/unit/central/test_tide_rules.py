"""Roles, flips and marks of tide pools: tables of the rules, and laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.tide.marks import (
    BATCH_UNWANTED,
    POOL_LABEL,
    SERVICES_UNWANTED,
    SideTaints,
    TideTaint,
    marks_of,
    standing_of,
)
from services.central.core.tide.roles import ONLINE, Amount, Reserves, Role, Standing, count_of, role_changes
from services.central.core.tide.sides import Flip, TideNode, TidePod, next_flip
from shared.errors import Refused

ROLES: tuple[Role, ...] = ("online_reserve", "offline_reserve", "tide_online", "tide_offline")
STANDINGS: tuple[Standing, ...] = (*ROLES, "other", None)
OWN = SideTaints()
FOREIGN = TideTaint("gpu", "NoSchedule", "true")


def node(name: str, role: Standing, cpu: int = 4000, **fields: object) -> TideNode:
    return TideNode(name, role, {"cpu": cpu, "memory": 8000}, **fields)  # type: ignore[arg-type]


def pod(name: str, on: str | None = None, cpu: int = 1000, **fields: object) -> TidePod:
    return TidePod(name, on, {"cpu": cpu, "memory": 1000}, **({"online": True} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amount", "nodes", "up", "want"),
    [(None, 9, True, 0), (0, 9, True, 0), (12, 9, True, 12), ("30%", 4, True, 2), ("30%", 4, False, 1),
     ("0%", 4, True, 0), ("100%", 4, False, 4), ("50%", 0, True, 0)],
)  # fmt: skip
def test_an_amount_is_a_number_or_a_percentage(amount: Amount, nodes: int, up: bool, want: int) -> None:
    assert count_of(amount, nodes, up=up) == want


@pytest.mark.parametrize("amount", [-1, "-1%", "101%", "30", "30.5%", "", "%", "٣٠%", "1e2%", 10**7])
def test_what_is_no_amount_is_refused_with_its_side(amount: Amount) -> None:
    with pytest.raises(Refused, match=r"^offline reserve .* want a number from 0") as caught:
        Reserves.of(1, amount, 4)
    assert caught.value.reason == "invalid_reserve"


@given(st.dictionaries(st.text("abc", min_size=1), st.sampled_from(STANDINGS)), st.integers(0, 6), st.integers(0, 6))
def test_changes_of_roles_settle_at_once_and_move_nobody_to_the_other_side(
    nodes: dict[str, Standing], online: int, offline: int
) -> None:
    reserves = Reserves(online, offline)
    changes = role_changes(nodes, reserves)
    after = {**nodes, **{change.node: change.role for change in changes}}
    assert len({change.node for change in changes}) == len(changes)
    for change in changes:
        before = nodes[change.node]
        assert before != "other"
        if before is not None:
            assert (before in ONLINE) == (change.role in ONLINE)
    again = role_changes(after, reserves)
    # What was new, or surplus, in this pass may still be taken by a reserve in the next; after that it rests.
    settled = {**after, **{change.node: change.role for change in again}}
    assert role_changes(settled, reserves) == []


def test_a_reserve_keeps_the_same_nodes_while_it_has_enough() -> None:
    assert role_changes({"a": "online_reserve", "b": "tide_online"}, Reserves(1, 0)) == []


@pytest.mark.parametrize(
    ("nodes", "pods", "flip", "stuck"),
    [
        pytest.param(
            [node("a", "tide_offline")],
            [pod("p", unschedulable=True)],
            Flip("a", "tide_online", "p"),
            ("p",),
            id="for a pod",
        ),
        pytest.param([node("a", "tide_offline")], [pod("p")], None, (), id="not seen by the scheduler yet"),
        pytest.param(
            [node("a", "tide_offline")],
            [pod("p", online=False, unschedulable=True)],
            None,
            (),
            id="batch waits for itself",
        ),
        pytest.param(
            [node("a", "tide_offline", unschedulable=True)], [pod("p", unschedulable=True)], None, ("p",), id="cordoned"
        ),
        pytest.param(
            [node("a", "offline_reserve")], [pod("p", unschedulable=True)], None, ("p",), id="a reserve stays"
        ),
        pytest.param(
            [node("a", "tide_offline")],
            [pod("p", unschedulable=True, excluded=frozenset("a"))],
            None,
            ("p",),
            id="not its node",
        ),
        pytest.param(
            [node("a", "tide_offline"), node("b", "tide_offline")],
            [pod("batch", "a", online=False), pod("p", unschedulable=True)],
            Flip("b", "tide_online", "p"),
            ("p",),
            id="the least used",
        ),
        pytest.param(
            [node("a", "tide_offline"), node("o", "online_reserve")],
            [pod("p", unschedulable=True)],
            None,
            (),
            id="fits already",
        ),
        pytest.param(
            [node("a", "tide_offline")],
            [pod("large", cpu=5000, unschedulable=True), pod("small", unschedulable=True)],
            Flip("a", "tide_online", "small"),
            ("large", "small"),
            id="the next one where the first is not helped",
        ),
        pytest.param(
            [node("a", "tide_online"), node("b", "tide_online"), node("o", "tide_offline", cpu=1)],
            [pod("p", cpu=9000, unschedulable=True)],
            None,
            ("p",),
            id="nothing goes while a pod waits",
        ),
        pytest.param([node("a", "tide_online")], [], None, (), id="the last one stays"),
        pytest.param(
            [node("a", "tide_online"), node("b", "online_reserve")], [], None, (), id="a reserve is no tide node"
        ),
        pytest.param(
            [node("b", "tide_online"), node("a", "tide_online")], [], Flip("a", "tide_offline"), (), id="by name"
        ),
        pytest.param(
            [node("a", "tide_online"), node("b", "tide_online")],
            [pod("x", "a", cpu=3000), pod("y", "b", cpu=2000)],
            None,
            (),
            id="its pods would not fit",
        ),
        pytest.param(
            [node("a", "tide_online"), node("b", "tide_online")],
            [pod("x", "a", cpu=3900), pod("d", "b", cpu=500, stays=True)],
            Flip("b", "tide_offline"),
            (),
            id="what stays need not fit elsewhere",
        ),
        pytest.param(
            [node("a", "tide_online"), node("b", "tide_online", flipped_s_ago=5.0)],
            [pod("x", "a"), pod("y", "b", cpu=1)],
            Flip("a", "tide_offline"),
            (),
            id="held",
        ),
    ],
)
def test_one_pass(nodes: list[TideNode], pods: list[TidePod], flip: Flip | None, stuck: tuple[str, ...]) -> None:
    found = next_flip(nodes, pods, min_hold_s=10.0)
    assert (found.flip, found.stuck) == (flip, stuck)


@pytest.mark.parametrize("role", ROLES)
def test_marks_are_read_as_they_are_written(role: Role) -> None:
    marks = marks_of(role, "green", {"zone": "z"}, [FOREIGN], OWN)
    assert standing_of(marks.labels, "green") == role
    assert standing_of(marks.labels, "blue") == "other"
    assert marks.labels["zone"] == "z"
    assert set(marks.taints) == {FOREIGN, BATCH_UNWANTED if role in ONLINE else SERVICES_UNWANTED}


@given(st.sampled_from(ROLES), st.sampled_from([*ROLES, None]))
def test_marks_of_one_role_leave_nothing_of_another(before: Role, after: Role | None) -> None:
    one = marks_of(before, "green", {"zone": "z"}, [FOREIGN], OWN)
    other = marks_of(after, "green", one.labels, one.taints, OWN)
    assert other == marks_of(after, "green", {"zone": "z"}, [FOREIGN], OWN)
    assert marks_of(None, "green", other.labels, other.taints, OWN) == marks_of(
        None, "green", {"zone": "z"}, [FOREIGN], OWN
    )


def test_labels_that_say_half_of_a_role_say_none() -> None:
    assert standing_of({POOL_LABEL: "green"}, "green") is None
    assert standing_of({}, "green") is None
