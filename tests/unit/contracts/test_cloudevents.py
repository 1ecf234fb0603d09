"""Eviction events as CloudEvents 1.0 over NATS, binary mode."""

from example_messages import EVENT
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import PHASES


def event(**changes: object) -> EvictionEvent:
    return EvictionEvent.model_validate({**EVENT.model_dump(), **changes})


@given(
    st.sampled_from(PHASES),
    st.integers(1, 10**6),
    st.text(max_size=50),
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True),
)
def test_an_event_survives_the_binding(phase: str, attempt: int, text: str, name: str) -> None:
    sent = event(phase=phase, attempt=attempt, message=text, detail=text, namespace=name, pod=name)
    assert read_event(event_subject(sent), event_headers(sent), sent.encode()) == sent


@given(st.sampled_from(PHASES), st.integers(1, 99))
def test_headers_are_lower_case_printable_ascii_without_line_ends(phase: str, attempt: int) -> None:
    for name, value in event_headers(event(phase=phase, attempt=attempt)).items():
        assert name.startswith("ce-")
        assert name == name.lower()
        assert all("!" <= letter <= "~" for letter in value)


def test_the_headers_are_those_of_the_specification() -> None:
    headers = event_headers(EVENT)
    assert headers["ce-specversion"] == "1.0"
    assert headers["ce-id"] == f"{EVENT.intent_id}/created/2"
    assert headers["ce-type"] == "io.sublet.eviction.created.v1"
    assert headers["ce-source"] == "/nodes/ip-10-0-0-1.ec2.internal/evictor"
    assert headers["ce-subject"] == "team-a/encode"
    assert headers["ce-time"] == "2026-01-02T03:04:05Z"
    assert headers["ce-datacontenttype"] == "application/json"
    assert headers["ce-partitionkey"] == "1f3a-5b"
    assert headers["ce-sequence"] == "00000000000000000002"
    assert headers["ce-mode"] == "enforce"
    assert event_headers(event(mode="dry-run"))["ce-mode"] == "dry-run"


def test_steps_of_one_eviction_sort_by_their_sequence_as_text() -> None:
    sequences = [event_headers(event(attempt=n))["ce-sequence"] for n in (1, 2, 9, 10, 100)]
    assert sequences == sorted(sequences)


def test_every_fact_has_its_own_id() -> None:
    ids = {event(phase=phase, attempt=attempt).event_id for phase in PHASES for attempt in (1, 2)}
    assert len(ids) == 2 * len(PHASES)
