"""What the stock scheduler makes of extenders, as the what-if kind tells it."""

from typing import Any

import pytest

from sublet.whatif import answer, kinds

KNOWN = kinds()


def combined(nodes: list[str], *extenders: dict[str, Any], **scores: int) -> dict[str, Any]:
    named = [{"name": f"x{place}"} | one for place, one in enumerate(extenders)]
    return answer(KNOWN, "extender_combine", {"nodes": nodes, "in_tree_scores": scores, "extenders": named})


def keeps(*nodes: str, **more: Any) -> dict[str, Any]:
    return {"filter": {"nodes": list(nodes)} | more}


def rates(**points: int) -> dict[str, Any]:
    return {"prioritize": [{"Host": name, "Score": score} for name, score in points.items()]}


def test_extenders_filter_one_after_the_other_on_what_is_left() -> None:
    found = combined(["a", "b", "c"], keeps("a", "b", failed={"c": "hot"}), keeps("b", failed={"a": "full"}))
    assert found["feasible"] == ["b"]
    assert found["failed"] == {"a": "full", "c": "hot"}


def test_what_is_unresolvable_is_not_also_failed() -> None:
    found = combined(["a", "b"], keeps("a", failed={"b": "hot"}, unresolvable=["b"]))
    assert (found["failed"], found["unresolvable"]) == ({}, ["b"])


def test_nothing_left_stops_and_nobody_else_can_fail() -> None:
    found = combined(["a"], keeps(), keeps(error="down"))
    assert (found["feasible"], found["totals"], found["best"]) == ([], {}, [])


@pytest.mark.parametrize(
    "reply", [pytest.param(keeps("a", error="down"), id="an error"), pytest.param(keeps("a", "z"), id="a strange node")]
)
def test_a_failed_filter_ends_the_attempt_unless_it_may_be_ignored(reply: dict[str, Any]) -> None:
    assert combined(["a", "b"], reply)["error"] == "extender_failed"
    assert combined(["a", "b"], reply | {"ignorable": True})["feasible"] == ["a", "b"]
    assert combined(["a", "b"], reply | {"interested": False})["feasible"] == ["a", "b"]


def test_points_weigh_tenfold_and_what_cannot_be_used_counts_nothing() -> None:
    found = combined(
        ["a", "b", "c"],
        rates(a=3, b=1, z=10) | {"weight": 2},
        {"prioritize": "timeout"},
        rates(b=9) | {"interested": False},
        a=5,
        c=65,
    )
    assert found["totals"] == {"a": 65, "b": 20, "c": 65}
    assert found["best"] == ["a", "c"]


def test_with_one_node_left_nobody_is_asked_for_points() -> None:
    assert combined(["a", "b"], keeps("b"), rates(b=10), b=7)["totals"] == {"b": 7}
