"""`sublet train` as a user calls it."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from services.advisor.policies.model import ModelSettings, read_weights, shipped_models
from shared.errors import BadConfig, Refused, Unfit
from sublet.cli import build
from sublet.commands import train

APP = build({"train": train})


def sublet(*args: Any, well: bool = True) -> str:
    outcome = CliRunner().invoke(APP, ["train", *map(str, args)], catch_exceptions=False)
    assert (outcome.exit_code == 0) == well, outcome.output
    return outcome.output


def noisy(count: int = 900, seed: int = 0) -> list[float]:
    chance = Random(seed)
    return [2 + 2 * chance.random() for _ in range(count)]


ONE_TENANT = ("--step", "10", "--pods-per-node", "1")


def test_weights_are_learned_written_and_compared(usage_csv: Callable[..., Any], tmp_path: Path) -> None:
    file, other, goal = usage_csv(noisy()), usage_csv(noisy(200, 1), name="other.csv"), tmp_path / "weights.json"
    told = sublet(file, "-o", goal, "--evaluate", other, *ONE_TENANT)
    assert ModelSettings(weights=goal).models == read_weights(goal).models
    learned, compared = told.split("\n\n")
    assert learned.splitlines()[0].split("   ")[0] == "STEP"
    assert learned.splitlines()[1].startswith("10 s")
    assert [line.split()[3] for line in compared.splitlines()[1:]] == ["model", "canonical", "percentile"]


def test_the_same_files_give_the_same_bytes(usage_csv: Callable[..., Any], tmp_path: Path) -> None:
    file = usage_csv(noisy())
    for name in ("a", "b"):
        sublet(file, "-o", tmp_path / name, *ONE_TENANT)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_shipped_weights_are_evaluated_without_learning(usage_csv: Callable[..., Any]) -> None:
    told = json.loads(sublet("--evaluate", usage_csv(noisy(150)), "--json", "--against", "canonical", *ONE_TENANT))
    assert [model["step_s"] for model in told["models"]] == [10.0, 300.0]
    (evaluation,) = told["evaluations"]
    assert evaluation["horizon_s"] == 60.0
    assert set(evaluation["policies"]) == {"model", "canonical"}
    assert evaluation["policies"]["model"]["predictions"] > 50


@pytest.mark.parametrize(
    ("args", "error", "names"),
    [
        pytest.param([], BadConfig, "want FILE", id="nothing"),
        pytest.param(["-o", "x"], BadConfig, "want FILE", id="an output without a file"),
        pytest.param(["nowhere.csv"], Refused, "nowhere.csv", id="no such file"),
        pytest.param(["--evaluate", "nowhere.csv"], Refused, "nowhere.csv", id="no such file to evaluate"),
        pytest.param(["--evaluate", "x", "--weights", "nowhere"], BadConfig, "--weights nowhere", id="no such weights"),
        pytest.param(["--evaluate", "synthetic", "--against", "none"], BadConfig, "none", id="no such policy"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(args: list[str], error: type[Any], names: str) -> None:
    with pytest.raises(error, match=names):
        sublet(*args)


def test_a_file_with_faults_is_refused_with_the_first_of_them(usage_csv: Callable[..., Any]) -> None:
    file = usage_csv([*noisy(), -1.0])
    with pytest.raises(Refused, match=r"usage\.csv: line 902"):
        sublet(file, *ONE_TENANT, "-o", "never")


def test_an_output_that_cannot_be_written_is_told(usage_csv: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(Unfit, match="cannot write"):
        sublet(usage_csv(noisy()), "-o", tmp_path / "no-folder" / "weights.json", *ONE_TENANT)


def printed() -> list[list[str]]:
    """The arguments of each `sublet train` in the blocks of docs/model-policy.md."""
    page = (Path(__file__).parents[3] / "docs/model-policy.md").read_text()
    blocks = "".join(re.findall(r"```\n(.*?)```", page, re.DOTALL))
    return [shlex.split(line)[2:] for line in blocks.splitlines() if line.startswith("sublet train")]


def test_the_page_prints_commands_that_can_be_read() -> None:
    found = printed()
    assert len(found) == 2
    for args in found:
        group = get_command(APP)
        assert isinstance(group, TyperGroup)
        context = group.commands["train"].make_context("train", list(args))
        assert context.params["files"]
        assert context.params["output"]


def test_the_shipped_weights_are_those_of_the_command_on_the_page() -> None:
    (args,) = (args for args in printed() if args[-1].endswith("policies/model.json"))
    used = {source for model in shipped_models() for source in str(model.trained_on["sources"]).split(", ")}
    assert used == set(args[:-2])
