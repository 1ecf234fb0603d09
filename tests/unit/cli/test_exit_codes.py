"""One table of exit codes: what each error ends with, what the page says, and what becomes of a fault of our own."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from shared.errors import BadConfig, Conflict, Refused, SubletError, Unavailable, Unfit
from sublet import cli, exit_codes

PAGE = Path(__file__).parents[3] / "docs/exit-codes.md"


def application(error: BaseException) -> typer.Typer:
    def fail() -> None:
        raise error

    return cli.build({"fail": SimpleNamespace(register=lambda app: app.command()(fail))})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused("x"), 2), (BadConfig("x"), 2), (Refused("pod x not found", reason="not_found"), 1),
        (Unavailable("x"), 3), (Unfit("x"), 1), (Conflict("x"), 1), (KeyboardInterrupt(), 130), (SystemExit(9), 9),
        (FileNotFoundError(2, "No such file or directory", "a.yaml"), 1), (ValueError("x"), 70),
    ],
)  # fmt: skip
def test_each_error_has_its_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ended = cli.call(application(error), ["fail"])
    except SystemExit as end:
        ended = int(end.code or 0)
    assert ended == code
    assert "Traceback" not in capsys.readouterr().err


def test_the_page_has_every_code() -> None:
    said = set(re.findall(r"^\| (\d+)", PAGE.read_text(), re.MULTILINE))
    named = {str(getattr(exit_codes, name)) for name in exit_codes.__all__ if name.isupper()}
    assert named - {str(exit_codes.INTERRUPTED)} == said


def test_a_files_trouble_has_its_name_and_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    cli.call(application(FileNotFoundError(2, "No such file or directory", "a.yaml")), ["fail"])
    assert capsys.readouterr().err == "sublet: a.yaml: no such file or directory\n"


def test_a_fault_of_our_own_is_one_line_and_its_trace_is_written_when_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    app = application(ValueError("three\nlines\x1b[31m"))
    assert cli.call(app, ["fail"]) == exit_codes.INTERNAL
    said = capsys.readouterr().err
    assert said.startswith("sublet: a fault of Sublet itself (ValueError: three lines\\x1b[31m); please report it")
    assert (said.count("\n"), list(tmp_path.iterdir())) == (1, [])
    assert cli.call(app, ["--debug", "fail"]) == exit_codes.INTERNAL
    (trace,) = tmp_path.iterdir()
    assert str(trace) in capsys.readouterr().err
    assert "ValueError: three" in trace.read_text()


@pytest.mark.parametrize("error", [Refused("x" * 9000), SubletError("a\n\nb")])
def test_an_error_of_any_size_is_one_line(error: SubletError, capsys: pytest.CaptureFixture[str]) -> None:
    cli.call(application(error), ["fail"])
    said = capsys.readouterr().err
    assert (said.count("\n"), len(said) < 2100) == (1, True)
