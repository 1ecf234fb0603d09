"""A Secret that calls itself a release of Helm's, a folder that calls itself a chart: read within bounds or refused."""

import base64
import gzip
import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from sublet.doctor.upgrade import chart as charts
from sublet.doctor.upgrade import release as releases
from sublet.doctor.upgrade.changes import MOST_DEPTH, fields_gone, refused_keys
from sublet.doctor.upgrade.chart import read_chart
from sublet.doctor.upgrade.release import MAX_PACKED_BYTES, deployed, read_release

Document = dict[str, Any]


def secret(data: bytes) -> Document:
    return {"data": {"release": base64.b64encode(base64.b64encode(data)).decode()}}


def test_a_small_text_that_unpacks_to_gigabytes_is_refused_before_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "MAX_UNPACKED_BYTES", 1 << 20)
    with pytest.raises(Refused, match="unpacks to more than"):
        read_release(secret(gzip.compress(b" " * (8 << 20))))


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"data": None}, {"data": []}, {"data": {"release": 5}}, {"data": {"release": "&&&"}},
        {"data": {"release": "x" * (MAX_PACKED_BYTES + 1)}}, {"data": {"release": base64.b64encode(b"&").decode()}},
        secret(b""), secret(b"no gzip"), secret(gzip.compress(b"x" * 99)[:20]), secret(gzip.compress(b"[]")),
        secret(gzip.compress(b"\xff")), secret(gzip.compress(b"[" * 100_000)), secret(zlib.compress(b"{}")),
    ],
    ids=range(14),
)  # fmt: skip
def test_what_is_no_release_is_refused(wrong: Document) -> None:
    with pytest.raises(Refused):
        read_release(wrong)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["chart", "config", "x"]), json_values, max_size=3))
def test_any_document_is_read(document: Document) -> None:
    found = read_release(secret(gzip.compress(json.dumps(document).encode())))
    assert isinstance(found.defaults, dict)
    assert isinstance(found.given, dict)


@given(st.lists(st.fixed_dictionaries({}, optional={"metadata": json_values, "data": json_values}), max_size=4))
def test_secrets_of_any_shape_are_no_release(secrets: list[Document]) -> None:
    assert deployed(secrets, "sublet") is None


def kind_of(schema: Any) -> Document:
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"versions": [version]}}


@given(json_values, json_values)
def test_kinds_and_values_of_any_shape_are_compared(one: Any, other: Any) -> None:
    fields_gone(kind_of(one), kind_of(other))
    if isinstance(one, dict) and isinstance(other, dict):
        refused_keys(one, other)


def test_a_schema_that_refers_to_itself_and_one_that_is_deeper_than_any_end() -> None:
    circle: Document = {"$ref": "#"}
    assert refused_keys({"a": {"b": 1}}, circle) == []
    deep: Document = {}
    for _ in range(10 * MOST_DEPTH):
        deep = {"properties": {"a": deep}, "additionalProperties": False}
    values: Document = {"wrong": 1}
    for _ in range(10 * MOST_DEPTH):
        values = {"a": values}
    assert refused_keys(values, deep) == []


def test_a_folder_with_more_kinds_than_a_chart_can_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "MOST_KINDS", 3)
    (tmp_path / "crds").mkdir()
    for number in range(4):
        (tmp_path / f"crds/{number}.yaml").write_text("{}")
    with pytest.raises(Refused, match="more than 3 files in crds"):
        read_chart(tmp_path)


@pytest.mark.parametrize("text", ["[]", "a: [", "\0", "a: &a [*a]", f"a: {'x' * (2 << 20)}"], ids=range(5))
def test_a_file_of_the_chart_that_is_none_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "Chart.yaml").write_text(text)
    (tmp_path / "values.yaml").write_text(text)
    (tmp_path / "values.schema.json").write_text("{}")
    with pytest.raises(Refused, match=r"Chart\.yaml"):
        read_chart(tmp_path)


@pytest.mark.parametrize(
    "kind", [{}, {"metadata": []}, {"metadata": {"name": 3}}, {"metadata": {"name": "x"}, "spec": 1}]
)
def test_a_kind_without_a_name_is_refused(tmp_path: Path, kind: Document) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds/x.yaml").write_text(json.dumps({"kind": "CustomResourceDefinition"} | kind))
    with pytest.raises(Refused, match="kind without"):
        read_chart(tmp_path)


def test_random_bytes_are_no_release() -> None:
    random.seed(7)
    for _ in range(200):
        with pytest.raises(Refused):
            read_release(secret(os.urandom(random.randrange(200))))
