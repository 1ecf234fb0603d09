"""docs/writing-a-field.md: what it prints works as printed, in a copy of the tree."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from printed_page import ROOT, copy_of_tree, run

from services.reporter.registry import TEMPLATE, known_fields
from shared.settings import raw_settings

PAGE = (ROOT / "docs/writing-a-field.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COPIED = ("services", "shared", "sublet", "tests/unit/reporter", "pyproject.toml")
UP = re.compile(r"^(?P<name>SUBLET_\w+)=(?P<value>\S+) sudo -E \.venv/bin/sublet up$")
READ = """import json, sys
from services.reporter.registry import configured_fields
from services.reporter.settings import ReporterSettings
found = configured_fields(ReporterSettings.model_validate(json.load(sys.stdin)["reporter"]))
print(json.dumps(found["busy"][1].model_dump(mode="json")))"""


@pytest.mark.timeout(300)
def test_from_the_template_to_a_field_that_was_tested_and_set(tmp_path: Path) -> None:
    tree = copy_of_tree(tmp_path, COPIED)
    told: list[tuple[str, str]] = []
    sections: list[Any] = []
    for kind, text in BLOCKS:
        if kind == "python":
            head, _, body = text.partition("\n")
            (tree / head.removeprefix("# ")).write_text(body)
        elif kind == "yaml":
            sections.append(yaml.safe_load(text))
        for line in text.splitlines() if kind == "sh" else ():
            if up := UP.match(line):
                sections.append(raw_settings(env={up["name"]: up["value"]}))
            else:
                told.append((line, run(tree, shlex.split(line))))
    tested = [output.splitlines()[-1] for line, output in told if "pytest" in line]
    assert len(tested) == 3
    assert all(re.match(r"[1-9]\d* passed", last) for last in tested), tested
    assert len(sections) == 2
    for section in sections:
        found = json.loads(run(tree, [".venv/bin/python", "-c", READ], json.dumps(section)))
        assert found == {"busy_cores": 4.0}


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "python", "yaml"}
    assert "busy" not in known_fields()


def test_the_template_is_there_to_be_copied_and_is_not_reported() -> None:
    assert (ROOT / f"services/reporter/fields/{TEMPLATE}.py").is_file()
    assert TEMPLATE not in known_fields()
