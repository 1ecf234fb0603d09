"""Durable consumers: words to settings, and what differs."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.bus.subjects import event_filter
from shared.contracts.eviction_phases import PHASES
from shared.core.bus.durable import Change, Durable, EventFilter, changes, read_start, wanted_durable
from shared.errors import Conflict, Refused

PLAIN = wanted_durable("team-a", EventFilter(namespaces=["team-a"]))


def test_words_become_filters() -> None:
    assert wanted_durable("x").filters == (event_filter(),)
    assert Durable("team-a", (event_filter(namespace="team-a"),)) == PLAIN
    both = wanted_durable(
        "x", EventFilter(namespaces=["a.b"], phases=["created", "failed", "created"], nodes=["n.example"])
    )
    assert both.filters == (
        "sublet.cluster.v1.event.eviction.created.a_b.n_example",
        "sublet.cluster.v1.event.eviction.failed.a_b.n_example",
    )


@pytest.mark.parametrize(
    "name", ["", "a b", "a.b", "a*", ">", "a/b", "-a", "_sublet", "é", "a\n", "x" * 65], ids=lambda name: repr(name[:8])
)
def test_a_name_that_the_server_cannot_hold_is_refused_with_the_bound(name: str) -> None:
    with pytest.raises(Refused, match="want 1 to 64 characters of A-Z a-z 0-9 - _"):
        wanted_durable(name)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"events": EventFilter(namespaces=["*"])}, "namespace '\\*'"),
        ({"events": EventFilter(namespaces=[""])}, "namespace ''"),
        ({"events": EventFilter(nodes=["a_b"])}, "node 'a_b'"),
        ({"events": EventFilter(phases=["gone"])}, "phase 'gone'.*intended, created"),
        ({"ack_wait_s": 0.0}, "ack wait 0 s.*0.1 to 86400"),
        ({"ack_wait_s": float("nan")}, "ack wait nan"),
        ({"max_deliver": 0}, "max deliver 0"),
        ({"max_deliver": -1}, "max deliver -1"),
        ({"start": "yesterday"}, "from 'yesterday'.*2026-03-09T14:00:00Z"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_other_words_are_refused_by_name(words: dict[str, Any], named: str) -> None:
    with pytest.raises(Refused, match=named):
        wanted_durable("x", **words)


def test_a_start_is_all_new_or_a_time_in_utc() -> None:
    assert (read_start("all"), read_start("new")) == ("all", "new")
    told = datetime(2026, 3, 9, 14, tzinfo=UTC)
    assert {read_start(f"2026-03-09T{rest}") for rest in ("14:00:00Z", "15:00+01:00", "14:00")} == {told}


def test_what_can_be_changed_is_named_with_both_values() -> None:
    wanted = replace(PLAIN, ack_wait_s=9.0, max_deliver=3)
    assert changes(PLAIN, wanted) == (Change("ack_wait_s", "30", "9"), Change("max_deliver", "none", "3"))
    assert changes(replace(PLAIN, max_ack_pending=256), PLAIN) == (Change("max_ack_pending", "256", "1"),)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (replace(PLAIN, start="new"), "start is new, wanted all"),
        (replace(PLAIN, ack_policy="none"), "ack_policy is none, wanted explicit"),
        (replace(PLAIN, kind="push"), "kind is push, wanted pull"),
        (replace(PLAIN, start=datetime(2026, 3, 9, tzinfo=UTC)), "start is 2026-03-09T00:00:00Z, wanted all"),
    ],
)
def test_what_cannot_be_changed_is_refused_with_both_values_and_the_next_step(now: Durable, told: str) -> None:
    with pytest.raises(Conflict, match=f"consumer team-a: {told}.*sublet consumers remove team-a"):
        changes(now, PLAIN)


durables = st.builds(
    wanted_durable,
    st.just("x"),
    st.builds(
        EventFilter,
        namespaces=st.lists(st.sampled_from(["a", "b.c"]), max_size=2),
        phases=st.lists(st.sampled_from(PHASES), max_size=3),
    ),
    start=st.sampled_from(["all", "2026-03-09T14:00:00Z"]),
    ack_wait_s=st.floats(0.1, 86_400.0),
    max_deliver=st.none() | st.integers(1, 9),
)


@given(durables, durables)
def test_the_same_words_change_nothing_and_other_words_say_what(now: Durable, wanted: Durable) -> None:
    assert changes(now, now) == ()
    if now.start == wanted.start:
        assert bool(changes(now, wanted)) == (now != wanted)
    else:
        with pytest.raises(Conflict):
            changes(now, wanted)
