"""What a reader accepts, and what it refuses with a word and a reason."""

import contextlib
import json
from typing import Any

import pytest
from example_messages import EXAMPLES
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.contracts.envelope import MAX_MESSAGE_BYTES, Reason
from shared.contracts.eviction import EvictionIntent
from shared.contracts.sample import NodeSample
from shared.errors import Refused

every_message = pytest.mark.parametrize("name", sorted(EXAMPLES))


def changed(name: str, *path: str | int, to: object) -> bytes:
    body = json.loads(EXAMPLES[name].encode())
    here = body
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = to
    return json.dumps(body).encode()


@every_message
def test_a_message_survives_the_wire(name: str) -> None:
    message = EXAMPLES[name]
    assert type(message).decode(message.encode()) == message


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("PoolAdvice", ("reclaimed_cpu_millis",), -1),
        ("PoolAdvice", ("reclaimed_cpu_millis",), float("nan")),
        ("PoolAdvice", ("reclaimed_memory_bytes",), float("inf")),
        ("PoolAdvice", ("reclaimed_memory_bytes",), 1.5),
        ("PoolAdvice", ("valid_for_s",), 0),
        ("PoolAdvice", ("valid_for_s",), float("nan")),
        ("PoolAdvice", ("valid_for_s",), 3601),
        ("PoolAdvice", ("pools", 0, "cpus"), -2),
        ("PoolAdvice", ("pools", 0, "numa"), -2),
        ("PoolAdvice", ("mode",), "sometimes"),
        ("PoolAdvice", ("seq",), -1),
        ("PoolAdvice", ("node",), "Node_A"),
        ("PoolAdvice", ("node",), "a.b.c\n"),
        ("PoolAdvice", ("boot_id",), "xyz"),
        ("PoolAdvice", ("sent_at",), "yesterday"),
        ("NodeSample", ("window_s",), -0.1),
        ("NodeSample", ("window_s",), float("inf")),
        ("NodeSample", ("node_reading", "cpu_usage_cores"), float("nan")),
        ("NodeSample", ("node_reading", "online_cpus"), "3-1"),
        ("NodeSample", ("node_reading", "online_cpus"), "0-99999"),
        ("NodeSample", ("node_reading", "extra"), {"x": float("nan")}),
        ("NodeSample", ("pods", 0, "pod", "uid"), "../../etc"),
        ("NodeSample", ("pods", 0, "pod", "name"), "a/b"),
        ("NodeSample", ("pods", 0, "pod", "qos"), "gold_cores"),
        ("NodeSample", ("pods", 0, "pod", "containers", 0, "name"), ".."),
        ("Allocation", ("pools", 0, "cpus"), "0-"),
        ("Allocation", ("pools", 0, "cpus"), "1,x"),
        ("Allocation", ("status",), "wished"),
        ("EvictionIntent", ("intent_id",), "1"),
        ("EvictionIntent", ("observed",), float("nan")),
        ("EvictionIntent", ("threshold",), float("inf")),
        ("EvictionIntent", ("deadline_s",), 0),
        ("EvictionEvent", ("phase",), "perhaps"),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else str(value),
)
def test_a_field_out_of_bounds_is_refused_and_named(
    name: str, path: tuple[Any, ...], value: dict[str, float] | float | str
) -> None:
    with pytest.raises(Refused) as caught:
        type(EXAMPLES[name]).decode(changed(name, *path, to=value))
    assert caught.value.reason == "malformed"
    assert name in str(caught.value)
    assert str(path[0]) in str(caught.value)


@every_message
@pytest.mark.parametrize("version", [0, 2, "x", None])
def test_an_unknown_version_is_refused_as_such(name: str, version: int | str | None) -> None:
    with pytest.raises(Refused) as caught:
        type(EXAMPLES[name]).decode(changed(name, "v", to=version))
    assert caught.value.reason == "unknown_version"


@every_message
def test_a_missing_field_is_refused_and_named(name: str) -> None:
    with pytest.raises(Refused, match="boot_id"):
        type(EXAMPLES[name]).decode(b'{"node": "a", "seq": 1, "sent_at": "2026-01-01T00:00:00Z"}')


@every_message
def test_a_message_that_is_too_large_is_refused_before_it_is_read(name: str) -> None:
    with pytest.raises(Refused) as caught:
        type(EXAMPLES[name]).decode(b" " * (MAX_MESSAGE_BYTES + 1))
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize(
    "payload",
    [b"", b"null", b"[]", b"5", b'"x"', b"{", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 100_000, b"NaN", b"{}" * 2],
    ids=range(11),
)
def test_what_is_no_message_is_refused(payload: bytes) -> None:
    with pytest.raises(Refused):
        PoolAdvice.decode(payload)


@given(st.sampled_from(sorted(EXAMPLES)), st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_and_never_anything_else(name: str, payload: bytes) -> None:
    with contextlib.suppress(Refused):
        type(EXAMPLES[name]).decode(payload)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.data(), st.sampled_from(sorted(EXAMPLES)), json_values)
def test_any_value_in_any_field_is_read_or_refused_and_what_was_read_survives_the_wire(
    data: Any, name: str, value: dict[str, Any] | float | list[Any] | None
) -> None:
    field = data.draw(st.sampled_from(sorted(type(EXAMPLES[name]).model_fields)))
    try:
        message = type(EXAMPLES[name]).decode(changed(name, field, to=value))
    except Refused:
        return
    if name != "PoolAdvice" or field != "why":
        assert type(message).decode(message.encode()) == message


def test_cpu_lists_have_one_spelling() -> None:
    body = changed("Allocation", "pools", 0, "cpus", to="3,1,2,7-7")
    assert Allocation.decode(body).pools[0].cpus == "1-3,7"


def test_an_absent_figure_stays_absent() -> None:
    sample = EXAMPLES["NodeSample"].model_copy(update={"window_s": None})
    assert b"window_s" not in sample.encode()
    assert NodeSample.decode(sample.encode()).window_s is None


@pytest.mark.parametrize("field", ["seq", "config_rev", "reclaimed_cpu_millis", "reclaimed_memory_bytes"])
def test_nothing_is_an_amount_too(field: str) -> None:
    assert getattr(PoolAdvice.decode(changed("PoolAdvice", field, to=0)), field) == 0


def test_a_message_that_is_as_large_as_allowed_is_read() -> None:
    advice = EXAMPLES["PoolAdvice"]
    assert PoolAdvice.decode(advice.encode().ljust(MAX_MESSAGE_BYTES)) == advice


def test_a_message_cannot_be_changed_after_it_was_made() -> None:
    with pytest.raises(ValueError, match="frozen"):
        EXAMPLES["PoolAdvice"].seq = 9  # type: ignore[misc] # mypy says so as well


def test_an_infinity_in_an_explanation_does_not_keep_a_message_from_being_sent() -> None:
    intent = EXAMPLES["EvictionIntent"].model_copy(update={"why": (Reason(rule="x", numbers={"a": float("inf")}),)})
    assert EvictionIntent.decode(intent.encode()).why[0].numbers == {"a": None}


def test_a_message_is_named_by_kind_and_number() -> None:
    assert [EXAMPLES[name].ref for name in ("NodeSample", "Allocation")] == ["sample/7", "alloc/7"]
