"""`sublet plugin`: from nothing to a plugin whose laws were checked; a wrong one is named with its file and line."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from services.evictor.registry import GROUP
from shared.core.scan import modules_in
from shared.errors import BadConfig, Refused, SubletError
from sublet import cli, commands
from sublet.exit_codes import FAILED, OK, REFUSED, code_of
from sublet.laws import plugin
from sublet.laws.extension import PLUGIN, find_extension

EXAMPLE = Path(__file__).parents[3] / "examples/plugin-wheel/sublet_plugin_disk_stall.py"
SHAPED = """
from sublet.api.plugin import Candidate, Container, Plugin, PluginSettings, Pod, Pressure, Reason

class Settings(PluginSettings):
    "Nothing."

def evaluate(memory, view, settings):
    return EVALUATED

def rank(view, pressure, settings):
    return RANKED

PRESSURE = Pressure(True, "x", OBSERVED, 1, why=Reason(rule="x", numbers={"x": 1}))
PLUGIN = Plugin("mine", Settings, lambda: None, evaluate, rank)
"""
"""A plugin whose answers a case says; `evaluate` stands in line 7, its answer in 8, `rank` in 10, its answer in 11."""
SETTINGS = "its settings have a sentence and enforce unless told otherwise"
SEES = "it sees a pressure where there is one and names who would relieve it"
ORDER = "the order of pods in a sample means nothing"
NOTHING = "without any figure it knows nothing"
NUMBERS = "every candidate has a reason and a relief that is a number"
CALM = "it is calm where there is plenty"
ABSENT = "a figure that is absent never makes a pressure"
MEMORY = "evaluating changes nothing but the memory that it returns"


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.build(modules_in(commands)), ["plugin", *words])


@pytest.fixture
def module(tmp_path: Path) -> Path:
    assert run("new", "short_of_room", "--in", str(tmp_path)).exit_code == OK
    return tmp_path / "sublet-plugin-short-of-room/sublet_plugin_short_of_room.py"


def laws_of(path: Path, *words: str) -> dict[str, dict[str, Any]]:
    """What is said of each law."""
    tested = run("test", str(path), "-o", "json", *words)
    told = json.loads(tested.stdout)
    assert tested.exit_code == (FAILED if told["broken"] else OK)
    assert "Traceback" not in tested.output
    return {law["law"]: law for law in told["laws"]}


def test_a_new_plugin_is_a_project_whose_laws_hold(module: Path) -> None:
    project = tomllib.loads((module.parent / "pyproject.toml").read_text())
    assert project["project"]["entry-points"][GROUP] == {"short_of_room": "sublet_plugin_short_of_room:PLUGIN"}
    assert find_extension(PLUGIN, str(module)).extension.name == "short-of-room-eviction-plugin"
    tested = run("test", str(module))
    assert tested.stdout.splitlines()[-1] == "short-of-room-eviction-plugin: 11 of 11 laws hold"
    assert tested.exit_code == OK
    assert {path.name for path in module.parent.iterdir()} == {"pyproject.toml", module.name}


def test_what_a_plugin_raises_writes_nothing_to_the_terminal_but_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "LAWS", {SEES: plugin.LAWS[SEES]})
    path = tmp_path / "own.py"
    path.write_text(SHAPED.replace("return EVALUATED", "raise OSError('\x1b[2J')").replace("OBSERVED", "2"))
    tested = run("test", str(path))
    assert tested.exit_code == FAILED
    assert f"{path}:8: OSError: \\x1b[2J" in tested.stdout
    assert "\x1b" not in tested.stdout


def test_the_example_holds_them_and_one_with_settings_that_it_needs() -> None:
    assert run("test", str(EXAMPLE), "--set", "stalled_percent=60").exit_code == OK
    without = run("test", "rootfs_pressure")
    assert without.exit_code == FAILED
    assert "lower its thresholds: --set KEY=VALUE" in without.stdout
    given = ("minimum_free_ratio=0.1", "minimum_inodes_free_ratio=0.1")
    assert run("test", "rootfs_pressure", *(word for one in given for word in ("--set", one))).exit_code == OK


@pytest.mark.parametrize(
    ("evaluated", "ranked", "observed", "law", "line", "words"),
    [
        ("1 / 0", "()", "2", SEES, 8, "ZeroDivisionError: division by zero"),
        ("exit(3)", "()", "2", SEES, 8, "SystemExit: 3"),
        ("None", "()", "2", SEES, 7, "evaluate: want (memory, finding), got None"),
        ("None, 'maybe'", "()", "2", SEES, 7, "evaluate: want a Pressure, 'calm' or 'unknown', got 'maybe'"),
        ("None, PRESSURE", "()", "float('nan')", SEES, 7, "observed nan, threshold 1: want finite numbers"),
        ("None, PRESSURE", "()", "2", SEES, 10, "rank: names nobody"),
        ("None, PRESSURE", "view.nodes", "2", SEES, 11, "AttributeError: 'View' object has no attribute 'nodes'"),
        ("None, PRESSURE", "None", "2", SEES, 10, "rank: want candidates, got None"),
        ("None, PRESSURE", "('p0',)", "2", SEES, 10, "rank: want candidates, got 'p0'"),
        ("None, PRESSURE", "(Candidate('p0', Reason(rule='x')),)", "2", SEES, 10,
         "'str' object has no attribute 'uid'"),
        ("None, PRESSURE", "(Candidate(Pod(uid='ab', name='gone'), Reason(rule='x')),)", "2", SEES, 10,
         "rank: default/gone (ab) is not in the sample"),
        ("None, PRESSURE", "[Candidate(r.pod, Reason(rule='x'), float('nan')) for r in view.pods]", "2", NUMBERS, 10,
         "has relief nan; want a finite number or None"),
        ("None, PRESSURE", "[Candidate(r.pod, Reason(rule='x')) for r in view.sample.pods]", "2", ORDER, 10,
         "end its order with namespace/name"),
        ("None, PRESSURE", "2 * [Candidate(r.pod, Reason(rule='x')) for r in view.pods]", "2", ORDER, 10,
         "rank: names a pod twice"),
        ("None, PRESSURE", "()", "2", NOTHING, 7, "evaluate: without any figure it says Pressure("),
        ("None, 'calm'", "()", "2", SEES, 7, "it never said pressure"),
        ("None, 'calm'", "()", "2", NOTHING, 7, "evaluate: without any figure it says 'calm', not 'unknown'"),
        ("None, PRESSURE", "()", "2", CALM, 7, "evaluate: with plenty of everything it says Pressure("),
        ("None, 'calm' if view.sample.numas and view.reclaimed else PRESSURE", "()", "2", ABSENT, 7,
         "it says Pressure("),
        ("object(), 'calm'", "()", "2", MEMORY, 7, "evaluate: says something else of the same view"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_named_with_file_and_line(
    evaluated: str, ranked: str, observed: str, law: str, line: int, words: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(plugin, "LAWS", {law: plugin.LAWS[law]})
    path = tmp_path / "own.py"
    text = SHAPED.lstrip("\n").replace("EVALUATED", evaluated).replace("RANKED", ranked).replace("OBSERVED", observed)
    path.write_text(text)
    found = laws_of(path)[law]
    assert (found["holds"], found["where"]) == (False, f"{path}:{line - 1}")
    assert words in found["case"]


@pytest.mark.parametrize(
    ("before", "after", "law", "words"),
    [
        ("rank)", "rank, lambda view, settings: 1)", "near is a pressure or nothing", "near: want a Pressure"),
        ('"Nothing."', 'mode: str = "observe"', SETTINGS, "has no first line that says what it is"),
        ('"Nothing."', '"Nothing."; mode: str = "observe"', SETTINGS, "mode is not 'enforce' by default"),
        ('"Nothing."', '"Nothing."; needed: int', SETTINGS, "needed"),
        ("lambda: None, evaluate", "list, lambda *a: (a[0].append(1), (a[0], 'calm'))[1]", MEMORY,
         "evaluate: changes the memory that it is given"),
    ],
)  # fmt: skip
def test_a_wrong_part_breaks_its_law(
    before: str, after: str, law: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "LAWS", {law: plugin.LAWS[law]})
    path, said = tmp_path / "own.py", {"EVALUATED": "None, PRESSURE", "RANKED": "()", "OBSERVED": "2"}
    text = SHAPED.lstrip("\n").replace(before, after)
    for word, value in said.items():
        text = text.replace(word, value)
    path.write_text(text)
    found = laws_of(path, *(("--set", "needed=1") if "needed" in after else ()))[law]
    assert (found["holds"], words in found["case"]) == (False, True), found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = 1", "has no `PLUGIN = Plugin(...)`; start one that has: sublet plugin new NAME"),
        ("x = 1\nPLUGIN = 1", "own.py:2) is a int, not a Plugin"),
        (SHAPED.replace("Settings, lambda", "int, lambda"), "its settings are no subclass of PluginSettings"),
        (SHAPED.replace("evaluate, rank)", "None, rank)"), "its evaluate is None; want a function"),
        (SHAPED.replace('"mine"', "7"), "its name is 7; want a text"),
        ("x = 1\ny = 1 / 0", "own.py:2: ZeroDivisionError: division by zero"),
        ("\nimport nix_da", "own.py:2: ModuleNotFoundError: No module named 'nix_da'"),
        ("raise SystemExit(5)", "own.py:1: SystemExit: 5"),
        ("x = 1\ndef f(:\n", "own.py:2: SyntaxError: invalid syntax"),
        ("x = " + "(" * 3000, "own.py"),
        ("x = '\0'", "null bytes"),
        (b"x = '\xff'", "not UTF-8 text"),
        (b"#" * ((1 << 20) + 1), "larger than 1048576 bytes"),
        (None, "no such file or directory"),
    ],
)
def test_a_file_that_is_no_plugin_is_refused_with_its_line(
    content: str | bytes | None, words: str, tmp_path: Path
) -> None:
    path, own = tmp_path / "own.py", {"EVALUATED": "1", "RANKED": "1", "OBSERVED": "1"}
    if isinstance(content, str):
        for word, value in own.items():
            content = content.replace(word, value)
        content = content.encode()
    if content is not None:
        path.write_bytes(content)
    error = run("test", str(path)).exception
    assert isinstance(error, Refused)
    assert (words in str(error), code_of(error)) == (True, REFUSED), str(error)


def test_a_file_does_not_replace_a_module_of_its_name(module: Path) -> None:
    path = module.with_name("json.py")
    module.rename(path)
    find_extension(PLUGIN, str(path))
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("memory_presure",), "did you mean 'memory_pressure'", FAILED),
        (("template", "--set", "least"), "--set least: want KEY=VALUE", REFUSED),
        (("template", "--set", "least_available_ratio=7"), "least_available_ratio = 7", REFUSED),
        (("template", "--set", "least_availabel_ratio=0.5"), "did you mean 'least_available_ratio'", REFUSED),
        (("template", "--set", "least_available_ratio=[1"), "--set", REFUSED),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], said: str, code: int) -> None:
    error = run("test", *words).exception
    assert isinstance(error, SubletError)
    assert (said in str(error), code_of(error)) == (True, code), str(error)


def test_settings_that_are_refused_are_those_of_the_plugin() -> None:
    with pytest.raises(BadConfig, match=r"plugin\.template-eviction-plugin\.mode"):
        raise run("test", "template", "--set", "mode=never").exception or AssertionError


@pytest.mark.parametrize("name", ["", "Short", "short-of", "2x", "a" * 41, "../x", "memory_pressure"])
def test_a_name_that_cannot_be_one_makes_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"want up to 40|choose another"):
        raise run("new", name, "--in", str(tmp_path)).exception or AssertionError
    assert list(tmp_path.iterdir()) == []
