"""Subjects: where messages travel, and which filters hear them."""

import re

import pytest
from example_messages import EVENT, INTENT
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.advice import PoolAdvice
from shared.contracts.bus import subjects
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, STREAMS, stream_of, subject_matches

NODE = "ip-10-0-0-1.ec2.internal"
TOKEN = "ip-10-0-0-1_ec2_internal"
tokens = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5)
patterns = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=5)


@given(patterns, st.booleans(), tokens)
def test_a_filter_matches_as_its_regular_expression_would(pattern: list[str], rest: bool, subject: list[str]) -> None:
    pattern = [*pattern, ">"] if rest else pattern
    expression = r"\.".join({"*": r"[^.]+", ">": r".+"}.get(part, part) for part in pattern)
    assert subject_matches(".".join(pattern), ".".join(subject)) == bool(re.fullmatch(expression, ".".join(subject)))


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (subjects.state_subject(PoolAdvice, NODE), f"sublet.node.v1.advice.{TOKEN}"),
        (subjects.state_subject(PoolAdvice, "*"), "sublet.node.v1.advice.*"),
        (subjects.health_subject(NODE, "qrm"), f"sublet.node.v1.health.{TOKEN}.qrm"),
        (subjects.health_subject("*", "*"), "sublet.node.v1.health.*.*"),
        (subjects.intent_subject(INTENT), f"sublet.cluster.v1.intent.{TOKEN}.1f3a-5b"),
        (
            subjects.event_subject(EVENT),
            f"sublet.cluster.v1.event.eviction.created.team-a.{TOKEN}",
        ),
        (subjects.event_filter(phase="created"), "sublet.cluster.v1.event.eviction.created.*.*"),
        (subjects.event_filter(node=NODE), f"sublet.cluster.v1.event.eviction.*.*.{TOKEN}"),
        (subjects.ask_subject(NODE, "qrm"), f"sublet.node.v1.ask.{TOKEN}.qrm"),
    ],
)
def test_subjects_are_as_designed(made: str, wanted: str) -> None:
    assert made == wanted


def test_durable_messages_fall_into_their_stream_and_nothing_else_does() -> None:
    assert stream_of(subjects.intent_subject(INTENT)) == INTENTS_STREAM
    assert stream_of(subjects.event_subject(EVENT)) == EVENTS_STREAM
    assert {stream_of(subjects.state_subject(m, NODE)) for m in subjects.STATE_MESSAGES} == {None}
    assert stream_of(subjects.ask_subject(NODE, "qrm")) is None


def test_a_later_major_version_falls_into_the_same_stream() -> None:
    assert stream_of("sublet.cluster.v2.intent.node-a.1f3a") == INTENTS_STREAM


def test_what_stays_on_the_node_says_so() -> None:
    reach = {m.__name__: subjects.state_subject(m, NODE).split(".")[1] for m in subjects.STATE_MESSAGES}
    assert {name for name, where in reach.items() if where == "cluster"} == {
        "Readiness", "HeardRound", "NodeOffer", "PodFigures", "ServiceProfiles", "CpuWatch", "CpuMap"}  # fmt: skip


def test_an_event_filter_hears_its_events_and_no_others() -> None:
    subject = subjects.event_subject(EVENT)
    assert subject_matches(subjects.event_filter(), subject)
    assert subject_matches(subjects.event_filter(namespace="team-a"), subject)
    assert not subject_matches(subjects.event_filter(namespace="team-b"), subject)
    assert not subject_matches(subjects.event_filter(phase="failed"), subject)


def test_the_duplicate_window_of_a_stream_fits_into_its_age() -> None:
    assert all(spec.duplicate_window_s <= spec.max_age_s for spec in STREAMS)
