"""Settings: defaults, file, environment; every refusal names the key, the value and what was probably meant."""

import os
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from shared.errors import BadConfig
from shared.settings import CommonSettings, Settings, common_settings, merge, raw_settings, read_environment, section


class QrmSettings(Settings):
    """A section."""

    period_s: Annotated[float, Field(gt=0, le=60)] = 5.0
    policy: str = "canonical"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"nats_urll": "x"}, ["nats_urll: no such setting", "did you mean 'nats_url'?"]),
        ({"advisr": {}}, ["advisr: no such setting", "did you mean 'advisor'?"]),
        ({"xyzzy": 1}, ["xyzzy: no such setting", "known: ", "nats_url"]),
        ({"substrate": "moon"}, ["substrate = 'moon'", "'host', 'sim' or 'kubernetes'"]),
        ({"http_port": 70000}, ["http_port = 70000", "want at most 65535"]),
        ({"connect_timeout_s": 0}, ["connect_timeout_s = 0", "want more than 0"]),
        ({"connect_timeout_s": "NaN"}, ["connect_timeout_s"]),
        ({"node": "Node_A"}, ["node = 'Node_A'"]),
        ({"node": "../../etc"}, ["node = '../../etc'"]),
        ({"log_level": "loud", "http_port": -1}, ["log_level = 'loud'", "http_port = -1"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_common_setting_that_cannot_be_used_is_named(raw: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadConfig) as caught:
        common_settings(raw)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"periods": 1}, ["qrm.periods: no such setting", "did you mean 'period_s'?"]),
        ({"period_s": -1}, ["qrm.period_s = -1", "want more than 0"]),
        ({"period_s": "soon"}, ["qrm.period_s = 'soon'", "number"]),
        ({"period_s": float("nan")}, ["qrm.period_s = nan"]),
        (7, ["qrm = 7"]),
        ([1], ["qrm = [1]"]),
    ],
    ids=str,
)
def test_a_section_that_cannot_be_used_is_named_with_its_path(values: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadConfig) as caught:
        section(QrmSettings, {"qrm": values}, "qrm")
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("raw", [{}, {"qrm": None}, {"qrm": {}}], ids=["absent", "empty", "no keys"])
def test_an_absent_section_is_its_defaults(raw: dict[str, Any]) -> None:
    assert section(QrmSettings, raw, "qrm") == QrmSettings()


def test_the_environment_wins_over_the_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "sublet.yaml"
    file.write_text("http_port: 1\nheartbeat_s: 3\nqrm:\n  period_s: 7\n  policy: mine\n")
    raw = raw_settings({"SUBLET_HTTP_PORT": "2", "SUBLET_QRM__PERIOD_S": "8", "OTHER": "x"}, file)
    common = common_settings(raw)
    assert (common.http_port, common.heartbeat_s, common.substrate) == (2, 3.0, "host")
    assert section(QrmSettings, raw, "qrm") == QrmSettings(period_s=8, policy="mine")


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "sublet.yaml"
    file.write_text("http_port: 9\n")
    assert common_settings(raw_settings({"SUBLET_CONFIG": str(file)})).http_port == 9


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[1, 2", r"not YAML \(line 1, column"),
        ("- 1", "want a mapping of keys, got list"),
        ("text", "got str"),
        (None, "no such file"),
    ],
    ids=["not YAML", "a list", "a word", "missing"],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, word: str) -> None:
    file = tmp_path / "sublet.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadConfig, match=word) as caught:
        raw_settings({}, file)
    assert str(file) in str(caught.value)


def test_an_empty_file_is_no_settings(tmp_path: Path) -> None:
    file = tmp_path / "sublet.yaml"
    file.write_text("# nothing yet\n")
    assert raw_settings({}, file) == {}


@pytest.mark.parametrize(
    ("env", "tree"),
    [
        ({"SUBLET_A": "1"}, {"a": 1}),
        ({"SUBLET_A": "true", "SUBLET_B": "x y", "SUBLET_C": ""}, {"a": True, "b": "x y", "c": None}),
        ({"SUBLET_A__B__C": "1.5", "SUBLET_A__D": "[1, 2]"}, {"a": {"b": {"c": 1.5}, "d": [1, 2]}}),
        ({"SUBLET_CONFIG": "/x", "PATH": "y", "SUBLE_A": "1"}, {}),
    ],
    ids=["number", "kinds", "sections", "others"],
)
def test_environment_names_are_paths_and_values_yaml(env: dict[str, str], tree: dict[str, Any]) -> None:
    assert read_environment(env) == tree


@pytest.mark.parametrize(
    ("env", "word"),
    [
        ({"SUBLET_QRM": "5", "SUBLET_QRM__PERIOD_S": "1"}, "SUBLET_QRM is set to a value"),
        ({"SUBLET_NODE": "[a"}, "SUBLET_NODE='\\[a'"),
    ],
    ids=["value and section", "not YAML"],
)
def test_an_environment_that_cannot_be_read_is_refused(env: dict[str, str], word: str) -> None:
    with pytest.raises(BadConfig, match=word):
        read_environment(env)


def test_merging_goes_into_mappings_and_changes_neither_side() -> None:
    base, over = {"a": {"x": 1, "y": 2}, "b": 1}, {"a": {"y": 3}, "b": {"c": 4}}
    assert merge(base, over) == {"a": {"x": 1, "y": 3}, "b": {"c": 4}}
    assert (base, over) == ({"a": {"x": 1, "y": 2}, "b": 1}, {"a": {"y": 3}, "b": {"c": 4}})


def test_the_defaults_name_this_host_and_the_real_root() -> None:
    common = CommonSettings()
    assert common.node
    assert (common.host_root, common.nats_url) == (Path("/"), "nats://127.0.0.1:4222")


@pytest.mark.parametrize(
    ("user", "named", "want"),
    [
        (0, "/elsewhere", "/var/lib/sublet"),
        (1000, "/state", "/state/sublet"),
        (1000, "", "/home/somebody/.local/state/sublet"),
        (1000, "begins/nowhere", "/home/somebody/.local/state/sublet"),
    ],
)
def test_the_state_lies_on_the_disk_of_its_user(
    user: int, named: str, want: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("XDG_STATE_HOME", named)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert CommonSettings().state_dir == Path(want)


def test_a_user_without_a_home_is_told_to_name_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(BadConfig, match="SUBLET_STATE_DIR=/path"):
        CommonSettings()
