"""Pauses of cluster and pools: what an operator's keys mean, and whom they mean."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.bus.subjects import MAX_CONFIG_BYTES
from shared.contracts.cluster.pauses import (
    MOST_PAUSES,
    WORDS,
    Pause,
    Pauses,
    pause_key,
    read_pause,
    read_pauses,
    why_paused,
)
from shared.errors import Refused

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GREEN = Pause(pool="green", reason="rebuild", until=NOW + timedelta(hours=1), by="alice")
WHOLE = Pause(pool="*", reason="release day")


@pytest.mark.parametrize(
    ("pauses", "pool", "paused"),
    [
        ((), None, False),
        ((GREEN,), "green", True),
        ((GREEN,), "blue", False),
        ((GREEN,), "", False),  # a node without the label is in no pool
        ((GREEN,), None, True),  # what is not known is careful
        ((WHOLE,), "", True),
        ((WHOLE,), "blue", True),
        ((GREEN.model_copy(update={"until": NOW}),), "green", False),
        ((GREEN.model_copy(update={"until": None}),), "green", True),
    ],
)
def test_whom_a_pause_means(pauses: tuple[Pause, ...], pool: str | None, paused: bool) -> None:
    assert bool(why_paused(pauses, pool, NOW)) is paused


def test_the_words_say_who_why_and_until_when() -> None:
    assert why_paused((GREEN,), "green", NOW) == "pool green: rebuild (by alice, until 2026-01-01 13:00:00 UTC)"
    assert why_paused((WHOLE,), None, NOW) == "the whole cluster: release day (by nobody who says so)"
    assert why_paused((GREEN,), None, NOW).endswith("; the pool of this node is not known")


def test_keys_name_pools_and_the_cluster() -> None:
    assert (pause_key("*"), pause_key("green.a")) == ("cluster", "pool.green.a")
    found, strange = read_pauses({"cluster": "{}", "pool.a": '{"reason": "x"}', "colour": "{}", "pool.": "{}"})
    assert [(one.pool, one.reason) for one in found] == [("*", "no reason given"), ("a", "x")]
    assert strange == ("colour", "pool.")


@pytest.mark.parametrize("pool", ["", " ", "a b", "-a", "a" * 64, "pool/a", "**", "ä"])
def test_what_is_no_value_of_a_label_is_refused(pool: str) -> None:
    with pytest.raises(Refused, match="want the value of a label"):
        pause_key(pool)


@given(st.text(max_size=100))
def test_a_pause_that_cannot_be_read_holds_without_end(text: str) -> None:
    found = read_pause("pool.green", text)
    assert found is not None
    assert found.holds(NOW) or found.until is not None


@pytest.mark.parametrize(
    "text",
    ["", "soon", "[]", '{"until": "tomorrow"}', '{"until": "2026-01-01T00:00:00"}', '{"reason": 1}',
     json.dumps({"reason": "r" * (WORDS + 1)}), json.dumps({"by": "b" * (WORDS + 1)})],
)  # fmt: skip
def test_broken_texts_pause(text: str) -> None:
    assert read_pause("cluster", text) == Pause(pool="*", reason="the pause cannot be read, and counts")


def test_a_value_that_is_no_text_pauses() -> None:
    found, strange = read_pauses({"pool.a": None, "pool.b": 7})
    assert [(one.pool, one.until) for one in found] == [("a", None), ("b", None)]
    assert strange == ()


def test_as_many_as_fit_are_told_apart_and_an_entry_of_more_is_refused() -> None:
    keys = {f"pool.p{number:03d}": "{}" for number in range(MOST_PAUSES)}
    found, _ = read_pauses(keys)
    assert [pause_key(one.pool) for one in found] == list(keys)
    assert Pauses.decode(Pauses(pauses=found).encode()).pauses == found
    too_many = json.dumps({"pauses": [{"pool": "a"}] * (MOST_PAUSES + 1)}).encode()
    with pytest.raises(Refused, match="pauses"):
        Pauses.decode(too_many)


def test_too_many_pause_everybody_and_the_most_fit_the_bucket() -> None:
    found, _ = read_pauses({f"pool.p{number}": "{}" for number in range(MOST_PAUSES + 1)})
    assert [one.pool for one in found] == ["*"]
    longest = Pause(pool="p" * 63, reason="r" * WORDS, until=NOW, by="")
    assert len(Pauses(pauses=(longest,) * MOST_PAUSES).encode()) <= MAX_CONFIG_BYTES


def test_an_entry_is_read_as_it_was_written() -> None:
    entry = Pauses(pauses=(GREEN, WHOLE))
    assert Pauses.decode(entry.encode()) == entry
    with pytest.raises(Refused, match="pauses"):
        Pauses.decode(b'{"pauses": [{}]}')
