"""Requests of the bridge are what the libraries of CloudEvents and Standard Webhooks make and read."""

import base64
import json
from datetime import UTC, datetime

from cloudevents.core.bindings.http import HTTPMessage, from_binary_event, to_binary_event
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from shared.contracts.eviction import EvictionEvent
from shared.contracts.ids import intent_id
from sublet.bridge.request import request_headers, signature

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
OBJECT_NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True)
TIMES = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def event(pod: str, namespace: str, sent_at: datetime) -> EvictionEvent:
    return EvictionEvent(
        node="n", boot_id="0" * 8, seq=1, sent_at=sent_at, pod=pod, namespace=namespace, scope="memory",
        intent_id=intent_id("n", "a", "p", 1), pod_uid="a", qos="reclaimed_cores", plugin="p", phase="intended",
    )  # fmt: skip


@given(OBJECT_NAMES, OBJECT_NAMES, TIMES)
def test_the_library_of_cloudevents_reads_every_attribute_as_it_was_meant(
    pod: str, namespace: str, sent_at: datetime
) -> None:
    told = event(pod, namespace, sent_at)
    body = told.encode()
    headers = request_headers(told, body, {}, None, 0)
    read = from_binary_event(HTTPMessage(headers, body))
    assert read.get_id() == told.event_id
    assert read.get_type() == "io.sublet.eviction.intended.v1"
    assert read.get_source() == "/nodes/n/evictor"
    assert read.get_subject() == f"{namespace}/{pod}"
    assert read.get_time() == sent_at
    assert read.get_datacontenttype() == "application/json"
    assert read.get_data() == json.loads(body)


@given(OBJECT_NAMES, OBJECT_NAMES, TIMES)
def test_the_library_of_cloudevents_writes_the_same_headers(pod: str, namespace: str, sent_at: datetime) -> None:
    told = event(pod, namespace, sent_at)
    headers = request_headers(told, told.encode(), {}, None, 0)
    theirs = to_binary_event(from_binary_event(HTTPMessage(headers, told.encode())))
    assert dict(theirs.headers) == headers


@given(st.binary(min_size=24, max_size=64), NAMES, TIMES, st.text(st.characters(codec="utf-8")))
def test_the_library_of_standard_webhooks_makes_the_same_signature(
    key: bytes, identity: str, at: datetime, body: str
) -> None:
    theirs = Webhook(base64.b64encode(key).decode()).sign(identity, at, body)
    assert signature(key, identity, int(at.timestamp()), body.encode()) == theirs
