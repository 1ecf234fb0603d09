"""`docs/migrating.md`: its commands are typed as they stand there, and its tables name what the code has."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from plan_documents import KATALYST, KOORDINATOR
from typer.testing import CliRunner

from sublet import cli
from sublet.commands import migrate
from sublet.exit_codes import NOT_THERE, OK
from sublet.migrate.labels import BACK, BEGUN, DONE, LEFT
from sublet.migrate.plan.line import Effect
from sublet.migrate.takeover.preparations import MODES, NAME, PRIORITY

PAGE = (Path(__file__).parents[3] / "docs/migrating.md").read_text()
PLACEHOLDERS = {"FILE-OR-FOLDER": "objects", "NODE": "n1"}


def typed() -> Iterator[list[str]]:
    """The command lines of the page, without their comments."""
    for block in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if "sublet" in words:
                yield [PLACEHOLDERS.get(word, word) for word in words[words.index("sublet") + 1 :]]


def first_column(head: str) -> list[str]:
    """The words of a table's first column, without marks."""
    table = PAGE.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [re.sub(r"[`|]", "", row).strip() for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of both systems, and no cluster anywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {"HOME": str(tmp_path), "PATH": "/usr/bin", "SUBLET_NATS_URL": "nats://127.0.0.1:1",
                                        "SUBLET_STATE_DIR": str(tmp_path)})  # fmt: skip
    Path("objects").mkdir()
    Path("objects/koordinator.yaml").write_text(KOORDINATOR.replace("GATES", ""))
    Path("objects/katalyst.yaml").write_text(KATALYST)


@pytest.mark.parametrize("words", list(typed()), ids=" ".join)
def test_a_command_of_the_page_is_understood(words: list[str]) -> None:
    result = CliRunner().invoke(cli.build({"migrate": migrate}), words)
    reason = getattr(result.exception, "reason", "")
    said = (result.exit_code, str(result.exception), result.output)
    if "-f" in words:
        assert result.exit_code == OK, said
        assert "settings.advisor.policy: koordinator" in result.output
    else:
        assert reason == "kubeconfig" or result.exit_code == NOT_THERE, said


def test_the_page_has_every_step() -> None:
    assert {words[2] for words in typed() if words[0] == "migrate"} == {
        "plan", "install", "compare", "takeover", "back",
    }  # fmt: skip


def test_a_plan_from_files_writes_the_values(tmp_path: Path) -> None:
    words = ["migrate", "koordinator", "plan", "-f", "objects", "--values", "values.yaml", "-o", "json"]
    result = CliRunner().invoke(cli.build({"migrate": migrate}), words)
    assert result.exit_code == OK, result.output
    assert yaml.safe_load((tmp_path / "values.yaml").read_text())["mode"] == "observe"
    assert "values.yaml: written" in result.stderr


def test_a_plan_with_something_wrong_says_so_by_its_exit_code() -> None:
    Path("objects/koordinator.yaml").write_text(KOORDINATOR.replace("qosClass: BE", "qosClass: BEST"))
    result = CliRunner().invoke(cli.build({"migrate": migrate}), ["migrate", "koordinator", "plan", "-f", "objects"])
    assert result.exit_code == 2
    assert "1 cannot be used" in result.stderr


def test_the_tables_name_what_there_is() -> None:
    assert first_column("effect")[-len(get_args(Effect)) :] == list(get_args(Effect))
    assert set(first_column("label")) >= {BEGUN, LEFT, DONE, BACK}
    assert f"priority {PRIORITY}" in PAGE
    assert f"`{NAME}-{MODES[DONE]}`" in PAGE
