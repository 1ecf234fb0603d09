"""The configuration of all nodes: what is taken, what is refused and in which words."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from services.central.adapters.watched_file import WatchedFile
from services.central.core.config import MAX_CONFIG_BYTES, encode_config, read_config
from shared.contracts.services import SERVICES
from shared.errors import BadConfig


@pytest.mark.parametrize(
    ("text", "document"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("evictor: {}\n", {"evictor": {}}, id="an empty section"),
        pytest.param("mode: enforce", {"mode": "enforce"}, id="the switch"),
        pytest.param("evictor: {memory: {mode: dry-run}}", {"evictor": {"memory": {"mode": "dry-run"}}}, id="nested"),
    ],
)
def test_a_good_document_is_taken_as_it_is(text: str, document: dict[str, Any]) -> None:
    assert read_config(text, known=SERVICES) == document


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("evictor: [", "not YAML", id="not YAML"),
        pytest.param("mode: enforced", "mode = 'enforced'.*did you mean 'enforce'", id="a misspelt mode"),
        pytest.param("mode: dry-run", "it is observe or enforce", id="a mode of plugins"),
        pytest.param("mod: enforce", "did you mean 'mode'", id="a misspelt switch"),
        pytest.param("- a", "want a mapping of sections, got list", id="a list"),
        pytest.param("evicter: {}", "did you mean 'evictor'", id="a misspelt section"),
        pytest.param("1: {}", "known: metrics", id="a section that is a number"),
        pytest.param("evictor: 3", "section 'evictor' is int", id="a section that is no mapping"),
        pytest.param("evictor:", "section 'evictor' is empty", id="a section without content"),
        pytest.param("evictor: {since: 2026-01-01}", "not JSON serializable", id="a date"),
        pytest.param("evictor: {ratio: .nan}", "use numbers", id="not a number"),
        pytest.param(f"evictor: {{a: {'x' * MAX_CONFIG_BYTES}}}", "at most 65536", id="too large"),
    ],
)
def test_a_bad_document_is_refused_in_clear_words(text: str, words: str) -> None:
    with pytest.raises(BadConfig, match=words):
        read_config(text, known=SERVICES)


def test_the_order_of_keys_makes_no_new_value() -> None:
    assert encode_config({"a": {}, "b": {}}) == encode_config({"b": {}, "a": {}})
    assert json.loads(encode_config({"a": {"x": 1}})) == {"a": {"x": 1}}


def test_a_file_is_read_once_for_each_change(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    file = WatchedFile(path)
    assert file.changed() is None
    path.write_text("one")
    assert file.changed() == "one"
    assert file.changed() is None
    path.write_text("two!")
    assert file.changed() == "two!"
    path.unlink()
    assert file.changed() is None
    path.write_text("two!")
    assert file.changed() == "two!"


def test_a_file_with_the_same_size_and_another_time_is_a_change(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("one")
    file = WatchedFile(path)
    file.changed()
    path.write_text("two")
    os.utime(path, ns=(1, 1))
    assert file.changed() == "two"


def test_an_unreadable_file_is_named_once(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe")
    file = WatchedFile(path)
    with pytest.raises(BadConfig, match=r"config\.yaml: cannot be read"):
        file.changed()
    assert file.changed() is None
