"""The rows of the live page: what changed since a revision, and None for what nobody told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_world import OFFER

from services.central.core.heartbeats.readiness import Assessment, NodeState, Standing
from services.central.core.live_page.feed import KEPT_EVENTS, EvictionFeed
from services.central.core.live_page.fleet import COLUMNS, FleetView, Row
from shared.adapters.clock import SystemClock
from shared.contracts.cluster.offer import NodeOffer, OfferedNuma, ResourceAmounts
from shared.contracts.eviction import EvictionEvent


def offer(node: str = "a", **fields: Any) -> NodeOffer:
    envelope: dict[str, Any] = {"node": node, "boot_id": "0123456789abcdef", "seq": 1, "sent_at": SystemClock().wall()}
    return NodeOffer(**envelope, **(OFFER | fields))


def standings(**states: NodeState) -> Assessment:
    return Assessment({name: Standing(state, "") for name, state in states.items()})


def named(row: Row) -> dict[str, Any]:
    return dict(zip(COLUMNS, row, strict=True))


def test_a_row_says_what_the_node_told() -> None:
    fleet = FleetView()
    fleet.take_offer(offer())
    fleet.take_standings(standings(a="ready"), {})
    (row,) = fleet.changes(0).rows
    told = named(row)
    assert (told["name"], told["state"], told["cpu_millis"], told["used_cpu_millis"]) == ("a", "ready", 8000, 2500)
    assert (told["offered_cpu_millis"], told["pods"]) == (4000, (0, 0, 2, 1))
    assert told["class_cpu_millis"] == (None, None, 1500, 500)


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"reclaimed": None}, "offered_cpu_millis"),
        ({"used": ResourceAmounts()}, "used_cpu_millis"),
        ({"numas": ()}, "cpu_millis"),
        ({"numas": (*OFFER["numas"], OfferedNuma(numa=1))}, "cpu_millis"),
    ],
)
def test_what_is_not_told_is_none_and_never_zero(fields: dict[str, Any], column: str) -> None:
    fleet = FleetView()
    fleet.take_standings(standings(a="ready"), {})
    fleet.take_offer(offer(**fields))
    (row,) = fleet.changes(0).rows
    assert named(row)[column] is None


def test_a_node_that_only_offers_and_never_beats_is_not_shown() -> None:
    fleet = FleetView()
    fleet.take_offer(offer())
    fleet.take_standings(standings(), {})
    assert fleet.changes(0).rows == []


EVENTS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["ready", "late", "offer", "gone"])), max_size=30)


@given(EVENTS, st.integers(0, 30))
def test_a_page_that_takes_every_change_shows_what_a_new_page_shows(events: list[tuple[str, Any]], seen: int) -> None:
    fleet, states = FleetView(), dict[str, NodeState]()
    shown: dict[str, Row] = {}
    since = 0
    for place, (node, event) in enumerate(events):
        if event == "offer":
            fleet.take_offer(offer(node, used=ResourceAmounts(cpu_millis=place)))
        elif event == "gone":
            states.pop(node, None)
        else:
            states[node] = event
        fleet.take_standings(standings(**states), {})
        if place % 3 == seen % 3:
            changes = fleet.changes(since)
            for name in changes.gone:
                shown.pop(name, None)
            shown |= {row[0]: row for row in changes.rows}
            since = changes.revision
            fleet.forget_gone(since)
    changes = fleet.changes(since)
    for name in changes.gone:
        shown.pop(name, None)
    shown |= {row[0]: row for row in changes.rows}
    assert shown == {row[0]: row for row in fleet.changes(0).rows}


def event(number: int, phase: str = "succeeded") -> EvictionEvent:
    return EvictionEvent(
        node="a", boot_id="0123456789abcdef", seq=number, sent_at=SystemClock().wall(),
        intent_id=f"6f0c0d9e-6a0c-5c3b-9f0e-{number:012x}", namespace="d", pod="p", pod_uid="a1",
        qos="reclaimed_cores", plugin="x", scope="node", phase=phase,
    )  # fmt: skip


def test_the_feed_keeps_the_newest_events_once_each() -> None:
    feed = EvictionFeed()
    for number in range(1, KEPT_EVENTS + 3):
        feed.add(event(number), number)
    feed.add(event(KEPT_EVENTS + 2), KEPT_EVENTS + 9)  # the same fact once more
    feed.add(event(1), 1)
    newest, events = feed.since(0)
    assert (newest, len(events)) == (KEPT_EVENTS + 2, KEPT_EVENTS)
    assert feed.since(newest) == (newest, [])
    assert [one["id"] for one in feed.since(KEPT_EVENTS)[1]] == [event(n).event_id for n in (501, 502)]
