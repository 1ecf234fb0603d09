"""The hash of a config: known values, Go's spelling, and laws."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.rollout.config_hash import canonical, hash_of


def config(cpu: float, soft: dict[str, float] | None) -> dict[str, Any]:
    thresholds = {"evictionThreshold": {"cpu": cpu}, "softEvictionThreshold": soft}
    return {"evictionConfig": {"dryRun": None, "reclaimedResourcesEvictionConfig": thresholds}}


@pytest.mark.parametrize(
    ("value", "digits"),
    [
        (None, "44136fa355b3"),
        ({}, "44136fa355b3"),
        (config(5, {"cpu": 1.5}), "190b30322065"),
        (config(10, {"cpu": 6}), "71cf0929a297"),
        (config(15.0, {"cpu": 10.0}), "d4b70d79b95f"),
        (config(5, None), "d66c6afd9fc2"),
    ],
)
def test_known_hashes(value: dict[str, Any] | None, digits: str) -> None:
    assert hash_of(value) == digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, False, None]}, '{"a":[true,false,null],"b":1}'),
        ("<a & b>", '"\\u003ca \\u0026 b\\u003e"'),
        ("\u2028é\n\x01\x7f", '"\\u2028é\\n\\u0001\x7f"'),
        ('"\\', '"\\"\\\\"'),
        (5.0, "5"),
        (0.0, "0"),
        (-0.0, "-0"),
        (1.5, "1.5"),
        (100.0, "100"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (9223372036854775807, "9223372036854775807"),
        (9223372036854775808, "9223372036854776000"),
        (10**20 + 1, "100000000000000000000"),
    ],
)
def test_values_are_spelled_as_go_spells_them(value: object, text: str) -> None:
    assert canonical(value) == text


EXACT = 2**53  # beyond it a float is printed like an integer
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_the_text_means_the_value(value: object) -> None:
    read = json.loads(canonical(value), parse_int=lambda text: int(text) if abs(int(text)) <= EXACT else float(text))
    assert read == value


@given(st.dictionaries(st.text(), JSON, max_size=5), st.randoms())
def test_the_order_of_keys_means_nothing(value: dict[str, Any], random: Random) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert hash_of({key: value[key] for key in keys}) == hash_of(value)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.text())
def test_a_null_counts(value: dict[str, Any], key: str) -> None:
    without = {k: v for k, v in value.items() if k != key}
    assert hash_of(without) != hash_of(without | {key: None})
