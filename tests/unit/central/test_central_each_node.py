"""Node by node: one that fails waits and holds up no other; several without an answer mean that the server is away."""

import asyncio
from typing import Any

import pytest
from fixture_types import Virtual

from services.central.leadership.each_node import AWAY_AFTER, LONGEST_WAIT_S, EachNode
from services.central.leadership.leader import NotLeading
from shared.adapters.clock import LoopClock
from shared.errors import Conflict, Refused, SubletError, Unavailable

NODES = ["a", "b", "c", "d", "e"]


class Work:
    """Writes that fail for some nodes."""

    def __init__(self, **failures: SubletError) -> None:
        self.failures = failures
        self.done: list[str] = []
        self.tried: list[str] = []

    async def __call__(self, node: str) -> None:
        self.tried.append(node)
        if node in self.failures:
            raise self.failures[node]
        self.done.append(node)


def test_each_node_is_worked_on_past_those_that_fail(virtual: Virtual) -> None:
    work = Work(b=Refused("too large"), d=Conflict("written by others"))

    async def story() -> EachNode:
        each = EachNode(LoopClock(), "try")
        await each.each(NODES, work)
        return each

    each = virtual(story())
    assert work.done == ["a", "c", "e"]
    assert each.failures == {"b": "too large", "d": "written by others"}


def test_a_failed_node_waits_twice_as_long_after_each_failure_and_not_at_all_after_a_success(virtual: Virtual) -> None:
    async def story() -> tuple[list[float | None], int, float | None, dict[str, str]]:
        each, work = EachNode(LoopClock(), "try"), Work(b=Refused("no"))
        waits = []
        for _ in range(9):
            await each.each(["a", "b"], work)
            waits.append(each.due_in_s)
            await asyncio.sleep(each.due_in_s or 0)
        tried = work.tried.count("b")
        work.failures.clear()
        await each.each(["a", "b"], work)
        return waits, tried, each.due_in_s, each.failures

    waits, tried, due_in_s, failures = virtual(story())
    assert waits == pytest.approx([1, 2, 4, 8, 16, 32, LONGEST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S])
    assert (tried, due_in_s, failures) == (9, None, {})


def test_a_node_that_must_wait_is_not_tried(virtual: Virtual) -> None:
    async def story() -> Work:
        each, work = EachNode(LoopClock(), "try"), Work(b=Refused("no"))
        for _ in range(50):
            await each.each(NODES, work)
        return work

    work = virtual(story())
    assert (work.tried.count("b"), work.tried.count("c")) == (1, 50)


def test_a_server_that_does_not_answer_is_not_asked_for_every_node(virtual: Virtual) -> None:
    work = Work(**dict.fromkeys(NODES, Unavailable("no answer")))

    async def story() -> None:
        with pytest.raises(Unavailable, match="no answer"):
            await EachNode(LoopClock(), "try").each(NODES, work)

    virtual(story())
    assert work.tried == NODES[:AWAY_AFTER]


def test_nodes_without_an_answer_cannot_keep_the_others_behind_them(virtual: Virtual) -> None:
    """As many as end a turn, first by name: their turn comes later each time."""
    hostile = [f"a{n}" for n in range(AWAY_AFTER)]
    work = Work(**dict.fromkeys(hostile, Unavailable("etcdserver: request is too large")))

    async def story() -> None:
        each = EachNode(LoopClock(), "try")
        with pytest.raises(Unavailable):
            await each.each([*hostile, "n1", "n2"], work)
        await each.each([*hostile, "n1", "n2"], work)

    virtual(story())
    assert work.done == ["n1", "n2"]


def test_one_who_does_not_lead_any_more_stops_at_once(virtual: Virtual) -> None:
    work = Work(a=NotLeading("another leads"))

    async def story() -> None:
        with pytest.raises(NotLeading):
            await EachNode(LoopClock(), "try").each(NODES, work)

    virtual(story())
    assert work.tried == ["a"]


def test_a_node_that_is_gone_is_forgotten(virtual: Virtual) -> None:
    async def story() -> dict[str, Any]:
        each = EachNode(LoopClock(), "try")
        await each.each(NODES, Work(b=Refused("no")))
        each.retain(["a"])
        return each.failures

    assert virtual(story()) == {}
