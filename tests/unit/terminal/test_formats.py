"""`-o` has the same words everywhere, and what has names, tables and documents is printed in each of them."""

import json
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup

from shared.core.scan import modules_in
from shared.errors import Refused
from sublet import cli, commands
from sublet.terminal.formats import DOCUMENT, JSONPATH, OBJECTS, ObjectList, document_text, printed

FILE = {"record", "train"}
"""Here `-o` names the file that is written."""
NAMES: list[Any] = [{"name": "a", "pending": 3}, {"name": "b", "pending": 0}]
LISTED = ObjectList(("consumer/a", "consumer/b"), lambda wide: "WIDE" if wide else "TABLE", lambda: NAMES)


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("table", "TABLE"),
        ("wide", "WIDE"),
        ("name", "consumer/a\nconsumer/b"),
        ("jsonpath={[*].name}", "a b"),
        ('jsonpath={range [*]}{.name}={.pending}{"\\n"}{end}', "a=3\nb=0\n"),
        ("text", "TABLE"),
        ("screen", "TABLE"),
    ],
)
def test_a_list_in_each_form(output: str, text: str) -> None:
    assert printed(LISTED, OBJECTS.read(output)) == text


def test_the_documents_hold_the_same() -> None:
    assert json.loads(printed(LISTED, OBJECTS.read("json"))) == NAMES
    assert yaml.safe_load(printed(LISTED, OBJECTS.read("yaml"))) == NAMES
    assert document_text({"whole": True}, DOCUMENT.read("jsonpath={.whole}")) == "true"


def test_what_a_command_does_not_have_is_refused_with_what_it_has() -> None:
    with pytest.raises(Refused, match=r"--output 'wide': want table, json, yaml or jsonpath=TEMPLATE$"):
        DOCUMENT.read("wide")
    with pytest.raises(Refused, match=r"did you mean 'yaml'\?"):
        OBJECTS.read("yml")


def test_every_command_says_formats_with_the_same_words() -> None:
    known = {*OBJECTS.kinds, "cloudevents", f"{JSONPATH}TEMPLATE"}
    root = typer.main.get_command(cli.build(modules_in(commands)))
    said = {name: metavar.split("|") for name, metavar in metavars(root, "") if name.strip() not in FILE}
    assert len(said) >= 10
    assert {name: words for name, words in said.items() if words[0] != "table" or not known >= set(words)} == {}


def metavars(command: Any, path: str) -> list[tuple[str, str]]:
    """Each command that has `-o`, with what its help says for it."""
    if isinstance(command, TyperGroup):
        return [found for name, one in command.commands.items() for found in metavars(one, f"{path} {name}")]
    return [(path, one.metavar or "its own") for one in command.params if "-o" in one.opts and one.name == "output"]
