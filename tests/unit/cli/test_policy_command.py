"""`sublet policy`: from nothing to a policy whose laws were checked, without a checkout's tests."""

import importlib.util
import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shared.core.scan import modules_in
from shared.errors import Refused, SubletError, Unfit
from sublet import cli, commands
from sublet.exit_codes import FAILED
from sublet.laws.check import check_policy
from sublet.laws.extension import POLICY, find_extension

QUICK = ("the order of containers means nothing", "every decision says why")


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.build(modules_in(commands)), ["policy", *words])


@pytest.fixture
def module(tmp_path: Path) -> Path:
    assert run("new", "half_way", "--in", str(tmp_path)).exit_code == 0
    return tmp_path / "sublet-policy-half-way/sublet_policy_half_way.py"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two laws instead of nine: the other tests of policies run all of them."""
    from sublet.laws import policy

    monkeypatch.setattr(policy, "LAWS", {name: policy.LAWS[name] for name in QUICK})


def test_a_new_policy_is_a_project_whose_laws_hold(module: Path, quick: None) -> None:
    project = tomllib.loads((module.parent / "pyproject.toml").read_text())
    points = project["project"]["entry-points"]["sublet.advisor.policies"]
    assert points == {"half_way": "sublet_policy_half_way:POLICY"}
    assert find_extension(POLICY, str(module)).extension.name == "half_way"
    tested = run("test", str(module))
    assert (tested.exit_code, tested.stdout.splitlines()[-1]) == (0, "half_way: 2 of 2 laws hold")


def test_a_broken_law_is_named_with_the_smallest_case(module: Path, quick: None) -> None:
    text = module.read_text()
    returned = "Demand(cores, memory_bytes, (why,))"
    assert returned in text
    module.write_text(text.replace(returned, "Demand(cores / 0, memory_bytes, (why,))"))
    tested = run("test", str(module), "-o", "json")
    assert tested.exit_code == FAILED
    told = json.loads(tested.stdout)
    assert (told["broken"], [law["law"] for law in told["laws"]]) == (2, list(QUICK))
    line = f"{module}:{module.read_text()[: module.read_text().index(' / 0')].count(chr(10)) + 1}"
    assert [law["where"] for law in told["laws"]] == [line, line]
    assert all("ZeroDivisionError" in law["case"] and "view=View(" in law["case"] for law in told["laws"])


@pytest.mark.parametrize("name", ["", "Half", "half-way", "2x", "a" * 41, "../x"])
def test_a_name_that_cannot_be_one_makes_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="want up to 40"):
        raise run("new", name, "--in", str(tmp_path)).exception or AssertionError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_stays_as_it_is(module: Path) -> None:
    module.write_text("mine")
    assert isinstance(run("new", "half_way", "--in", str(module.parents[1])).exception, Refused)
    assert module.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("x = 1", "has no `POLICY"),
        ("POLICY = 1", "is a int, not a Policy"),
        ("1 / 0", "ZeroDivisionError"),
        ("import nix_da", "ModuleNotFoundError"),
        (None, "no such file"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(content: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Refused, match=words):
        find_extension(POLICY, str(path))


def test_a_wrong_name_is_answered_with_the_likely_one() -> None:
    with pytest.raises(Refused, match="canonical"):
        find_extension(POLICY, "canonicl")


def test_without_hypothesis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(Unfit, match=r"sublet\[authors\]") as refused:
        check_policy(find_extension(POLICY, "canonical"))
    assert isinstance(refused.value, SubletError)
