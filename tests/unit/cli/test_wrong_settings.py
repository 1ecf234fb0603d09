"""The table of wrong settings and configurations: each is refused with its place, key, value and bound, and nothing is
started or published.

A new area is a module in `wrong_settings` with a list `CASES`; nothing has to be registered.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import typer
import wrong_settings
from wrong_inputs import NEVER, Row, application, attempt, machine, written
from wrong_settings.wrong_setting import WrongSetting

AREAS = [module.name for module in pkgutil.iter_modules(wrong_settings.__path__) if module.name != "wrong_setting"]
CASES: list[WrongSetting] = list(
    chain.from_iterable(importlib.import_module(f"wrong_settings.{area}").CASES for area in AREAS)
)
FOREIGN = (*NEVER, "validation error", "literal[", "unable to parse")
"""Words of libraries and of the interpreter."""


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return application()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with machine(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.typed.split()[0]}: {case.name}")
def test_a_wrong_setting_is_refused_in_our_words(
    app: typer.Typer, folder: Path, case: WrongSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, value in case.env.items():
        monkeypatch.setenv(name, value)
    before = written(folder)
    answer = attempt(app, Row(case.typed, case.code, ""))
    assert [word for word in case.said if word not in answer.err] == [], answer.err
    assert (answer.code, answer.out) == (case.code, "")
    assert [word for word in FOREIGN if word in answer.err] == [], answer.err
    assert written(folder) == before


def test_no_two_rows_have_the_same_name() -> None:
    names = [(case.typed, case.name) for case in CASES]
    assert sorted(names) == sorted(set(names))
