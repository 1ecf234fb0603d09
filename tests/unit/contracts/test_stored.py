"""The door for what the streams hold: an event or an intent as its subject says, or a refusal; never an exception."""

import ast
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from example_messages import EVENT, INTENT
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage, read_decision, read_event, read_intent
from shared.contracts.bus.subjects import MAX_FACT_BYTES, event_subject, intent_subject
from shared.contracts.eviction import EvictionEvent, EvictionIntent

ROOT = Path(__file__).parents[3]
SUBJECT = event_subject(EVENT)


def with_body(**changes: object) -> bytes:
    return json.dumps(json.loads(EVENT.encode()) | changes).encode()


def reason(subject: str = SUBJECT, headers: dict[str, str] | None = None, body: bytes | None = None) -> str:
    found = read_event(
        subject, event_headers(EVENT) if headers is None else headers, EVENT.encode() if body is None else body
    )
    assert isinstance(found, RefusedMessage)
    assert found.why.isascii()
    assert found.why.isprintable()
    return found.reason


@pytest.mark.parametrize("missing", ["ce-specversion", "ce-id", "ce-type", "ce-source"])
def test_a_required_attribute_that_is_missing_is_named(missing: str) -> None:
    headers = event_headers(EVENT)
    del headers[missing]
    found = read_event(SUBJECT, headers, EVENT.encode())
    assert isinstance(found, RefusedMessage)
    assert missing in found.why
    assert found.reason == "malformed"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ce-specversion": "0.3"}, "unknown_version"),
        ({"ce-id": "another"}, "forged"),
        ({"ce-type": "io.sublet.eviction.succeeded.v1"}, "forged"),
        ({"ce-source": "/nodes/other/evictor"}, "forged"),
        ({"ce-subject": "kube-system/coredns"}, "forged"),
        ({"ce-partitionkey": "ffff"}, "forged"),
        ({"ce-mode": "dry-run"}, "forged"),
        ({"ce-sequence": "00000000000000000009"}, "forged"),
        ({"ce-id": "\x1b[31m"}, "forged"),
        ({"x": "y" * MAX_FACT_BYTES}, "too_large"),
    ],
)
def test_attributes_that_are_not_the_bodys_are_refused(change: dict[str, str], expected: str) -> None:
    assert reason(headers=event_headers(EVENT) | change) == expected


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b"null", b"[" * 20_000, b'{"v":' + b"9" * 5_000 + b"}"])
def test_a_body_that_is_no_event_is_refused(body: bytes) -> None:
    assert reason(body=body) == "malformed"


@pytest.mark.parametrize(("over", "reason"), [(0, None), (1, "too_large")])
def test_the_headers_of_an_event_and_its_body_are_measured_together_before_they_are_read(
    over: int, reason: str | None
) -> None:
    headers = event_headers(EVENT)
    room = MAX_FACT_BYTES + over - sum(len(name) + len(value) for name, value in headers.items())
    found = read_event(SUBJECT, headers, EVENT.encode().ljust(room))
    assert getattr(found, "reason", None) == reason


@pytest.mark.parametrize(("over", "reason"), [(0, None), (1, "too_large")])
def test_an_intent_is_measured_before_it_is_read(over: int, reason: str | None) -> None:
    found = read_intent(intent_subject(INTENT), INTENT.encode().ljust(MAX_FACT_BYTES + over))
    assert getattr(found, "reason", None) == reason


@pytest.mark.parametrize(("over", "reason"), [(0, "malformed"), (1, "too_large")])
def test_a_decision_is_measured_before_it_is_read(over: int, reason: str) -> None:
    found = read_decision("sublet.v1.decision", b"{".ljust(MAX_FACT_BYTES + over))
    assert isinstance(found, RefusedMessage)
    assert found.reason == reason


def test_what_is_said_of_a_refused_fact_is_of_bounded_length() -> None:
    found = read_event(SUBJECT, event_headers(EVENT) | {"ce-id": "\x1b" * 10_000}, EVENT.encode())
    assert isinstance(found, RefusedMessage)
    assert len(found.why) <= 4 * 300, "each character may take four to be shown"


@pytest.mark.parametrize(
    ("moment", "read"),
    [
        ("1999-12-31T23:59:59Z", False),
        ("2000-01-01T00:00:00Z", True),
        ("2999-12-31T23:59:59Z", True),
        ("3000-01-01T00:00:00Z", False),
    ],
)
def test_only_a_time_within_a_thousand_years_is_read(moment: str, read: bool) -> None:
    found = read_event(SUBJECT, event_headers(EVENT), with_body(sent_at=moment))
    assert isinstance(found, EvictionEvent) is read


@pytest.mark.parametrize(
    "moment",
    ["2026-01-01T00:00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1999-12-31T00:00:00Z",
     -(10**20), 10**20],
)  # fmt: skip
def test_a_time_that_a_reader_cannot_compute_with_is_refused(moment: int | str) -> None:
    assert reason(body=with_body(sent_at=moment)) == "malformed"


def test_a_time_of_any_zone_is_given_in_utc() -> None:
    found = read_event(SUBJECT, event_headers(EVENT), with_body(sent_at="2026-01-02T05:04:05+02:00"))
    assert isinstance(found, EvictionEvent)
    assert (found.sent_at, found.sent_at.tzinfo) == (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), UTC)


@pytest.mark.parametrize(
    "change",
    [{"node": "other"}, {"namespace": "kube-system"}, {"phase": "failed"}],
    ids=lambda change: next(iter(change)),
)
def test_an_event_of_another_subject_is_forged(change: dict[str, str]) -> None:
    forged = EVENT.model_copy(update=change)
    assert reason(headers=event_headers(forged), body=forged.encode()) == "forged"


@pytest.mark.parametrize("change", [{"node": "other"}, {"pod_uid": "ffff"}], ids=lambda change: next(iter(change)))
def test_an_intent_of_another_subject_is_forged(change: dict[str, str]) -> None:
    assert read_intent(intent_subject(INTENT), INTENT.encode()) == INTENT
    found = read_intent(intent_subject(INTENT), INTENT.model_copy(update=change).encode())
    assert isinstance(found, RefusedMessage)
    assert found.reason == "forged"


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=12), st.text(max_size=12)), st.binary(max_size=80))
def test_nothing_that_is_stored_gets_an_exception_out_of_it(subject: str, headers: dict[str, str], body: bytes) -> None:
    for one in (headers, event_headers(EVENT) | headers):
        found = read_event(subject, one, body)
        assert isinstance(found, RefusedMessage)
        assert found.why.isprintable()
    assert isinstance(read_intent(subject, body), RefusedMessage)


@given(
    st.sampled_from(sorted(EvictionEvent.model_fields)),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.lists(st.text(), max_size=3),
)
def test_any_value_of_any_field_is_an_event_of_this_subject_or_refused(
    name: str, value: float | list[str] | str | None
) -> None:
    found = read_event(SUBJECT, event_headers(EVENT), with_body(**{name: value}))
    if isinstance(found, EvictionEvent):
        assert event_subject(found) == SUBJECT
        assert found.event_id == EVENT.event_id


def test_nobody_reads_past_the_door() -> None:
    """What a stream or a node has said becomes an event or an intent in one place; the ledger reads back its own."""
    doors = {"shared/contracts/bus/stored.py", "shared/adapters/ledger/sqlite.py"}
    past = [
        path.relative_to(ROOT).as_posix()
        for folder in ("services", "shared", "sublet")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("decode", "model_validate_json", "model_validate")
        and isinstance(node.value, ast.Name)
        and node.value.id in (EvictionEvent.__name__, EvictionIntent.__name__)
    ]
    assert set(past) <= doors
