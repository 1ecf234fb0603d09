"""`make bench`: which parts are measured, and what is kept of them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as command
from bench.rigs.report import OUT, Row, read_run

ROW = Row("CPU at rest", "4.00 % of a core", 3, "1 %")


async def found() -> list[Row]:
    return [ROW]


async def failed() -> list[Row]:
    raise RuntimeError("the bus has gone")


@pytest.fixture
def _parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two parts, the second of which fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "check_host", lambda _: [])
    parts = {"good": SimpleNamespace(measure=found), "bad": SimpleNamespace(measure=failed)}
    monkeypatch.setattr(command, "PARTS", parts)


@pytest.mark.usefixtures("_parts")
def test_a_part_that_fails_loses_no_row_of_those_before_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--repeats", "0"])
    with pytest.raises(RuntimeError, match="the bus has gone"):
        command.main()
    assert ROW.figure in capsys.readouterr().out
    (kept,) = OUT.glob("host-*.json")
    assert [row.what for row in read_run(kept).rows] == [ROW.what]


@pytest.mark.usefixtures("_parts")
def test_where_nothing_was_measured_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "bad", "--repeats", "0"])
    with pytest.raises(RuntimeError):
        command.main()
    assert not OUT.exists()
