"""The table of a bench, the file that is kept of it, and the run it is compared with."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.rigs.disturbance import Disturbance
from bench.rigs.report import Row, Run, changes, keep, observed, publish, read_run, run_before, table
from shared.errors import Refused

REST = Row("CPU at rest", "4.00 % of a core", 3, "1 %")
RUN = Run.here("kubernetes", [REST])


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        ("1.00 % of a core", "4.00 % of a core", "x 0.25"),
        ("67 (50) MiB", "134 (100) MiB", "x 0.50 / x 0.50"),
        ("5 ms", "0 ms", "-"),
        ("5 ms", "5 s", ""),
        ("5 / 6 ms", "5 ms", ""),
        ("nothing measured", "nothing measured", ""),
        ("5 ms", "", ""),
    ],
)
def test_figures_of_one_kind_are_compared_number_by_number(now: str, before: str, said: str) -> None:
    assert changes(now, before) == said


def test_a_kept_run_is_read_back(tmp_path: Path) -> None:
    assert read_run(keep(RUN, tmp_path)) == RUN


def test_the_last_run_of_this_machine_is_compared_with_and_no_other(tmp_path: Path) -> None:
    assert run_before("kubernetes", None, tmp_path) is None
    keep(RUN, tmp_path).rename(tmp_path / "kubernetes-1.json")
    keep(replace(RUN, hardware={"cpus": 1024}), tmp_path).rename(tmp_path / "kubernetes-2.json")
    (tmp_path / "kubernetes-3.json").write_text("{")
    keep(replace(RUN, bench="host"), tmp_path)
    assert run_before("kubernetes", None, tmp_path) == RUN


def test_a_row_that_the_last_run_lacks_is_compared_with_its_newest_figure(tmp_path: Path) -> None:
    older, newer = replace(REST, what="started"), replace(REST, what="started", figure="3.00 % of a core")
    runs = ([older], [newer, replace(REST, figure="9.00 % of a core")], [REST])
    for number, rows in enumerate(runs):
        keep(replace(RUN, rows=rows), tmp_path).rename(tmp_path / f"kubernetes-{number}.json")
    before = run_before("kubernetes", None, tmp_path)
    assert before is not None
    assert sorted(row.figure for row in before.rows) == [newer.figure, REST.figure]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 7}', "[" * 100_000, '{"bench": 1e999}', "\x00"])
def test_a_file_that_is_no_run_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(Refused, match=r"other\.json: not a run of a bench"):
        run_before("kubernetes", file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no such file"):
        read_run(tmp_path / "none")


def test_the_table_says_before_change_and_disturbance(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    now = observed([replace(REST, figure="1.00 % of a core")], Disturbance(0.3, 0.0, None, 2.0), 3)
    publish(Run.here("kubernetes", now), RUN, folder=tmp_path)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("CPU at rest"))
    assert "4.00 % of a core  x 0.25" in line
    assert line.endswith("DISTURBED: others 30%, steal 0%, load 2.0, best of 3")


def test_what_is_printed_as_json_can_be_compared_with_later(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    publish(RUN, None, "json", tmp_path / "runs")
    file = tmp_path / "printed.json"
    file.write_text(capsys.readouterr().out)
    assert run_before("kubernetes", file) == RUN


def test_a_row_of_an_older_run_says_its_own_day(tmp_path: Path) -> None:
    older = replace(RUN, machine="2 CPUs, Linux 6, Python 3, 2025-01-31", rows=[replace(REST, what="started")])
    for number, run in enumerate((older, RUN)):
        keep(run, tmp_path).rename(tmp_path / f"kubernetes-{number}.json")
    text = table(replace(RUN, rows=[REST, *older.rows]), run_before("kubernetes", None, tmp_path))
    rest, started = text.splitlines()[-2:]
    assert "4.00 % of a core (2025-01-31)  x 1.00" in started
    assert "2025-01-31" not in rest


def test_a_run_of_other_hardware_is_said_to_be_one() -> None:
    other = replace(RUN, hardware={"cpus": 1024, "model": "Abacus"})
    assert "other hardware: 1024 CPUs Abacus, ? GiB" in table(RUN, other).splitlines()[1]
    assert "other hardware" not in table(RUN, RUN)


def test_a_table_without_a_run_before_has_no_columns_for_one() -> None:
    assert "before" not in table(RUN, None)
