"""`sublet replay` and `sublet record` as users type them."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from services.advisor.registry import known_policies
from shared.errors import BadConfig, Refused, SubletError
from sublet.commands import replay
from sublet.replay import generate
from sublet.replay.judging.total import Curve
from sublet.replay.report.columns import MAX_BINS, bins
from sublet.replay.report.page import best_rows, headline

SHIPPED = Path(__file__).parents[3] / "examples" / "traces" / "web-and-batch.jsonl.gz"
BASELINES = ["--policy", "canonical", "--peer", "katalyst", "--peer", "koordinator"]
GOLDEN = """\
web-and-batch.jsonl.gz: 1 node, 0.333 node-hours, 601 frames
batch pods of 2 cores fill the offer and end after 1800 s of work; what runs above it for 60 s is evicted, the \
youngest first, and its work is lost
"""


Run = Callable[..., Result]
"""Runs the command with these arguments."""


@pytest.fixture
def run() -> Run:
    app = typer.Typer()
    app.command()(replay.replay)

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl.gz"
    with path.open("wb") as out:
        generate.write(out, seed=5, length_s=60.0)
    return path


def test_the_shipped_recording_is_the_one_that_the_generator_makes() -> None:
    made = io.BytesIO()
    generate.write(made)
    assert gzip.decompress(made.getvalue()) == gzip.decompress(SHIPPED.read_bytes())
    assert SHIPPED.stat().st_size < 200_000


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-o"], ["a", "b"]])
def test_the_generator_takes_one_name_and_no_option(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert generate.main(arguments) == 2
    assert capsys.readouterr().err == "usage: python -m sublet.replay.generate FILE\n"
    assert list(tmp_path.iterdir()) == []


def test_peers_and_baseline_on_the_shipped_recording(run: Run) -> None:
    """These do not change when our policies do."""
    result = run(SHIPPED, "-o", "json", *BASELINES)
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"]}
    keys = ("offered_core_hours", "violation_s", "violation_core_s", "evictions", "size_changes")
    assert {name: tuple(row[key] for key in keys) for name, row in rows.items() if name != "canonical"} == {
        "static": (4.0, 0.0, 0.0, 0, 0),
        "katalyst": (9.076, 6.0, 12.526, 18, 51),
        "koordinator": (6.41, 0.0, 0.0, 0, 281),
    }


def test_a_peer_beside_the_policy_of_its_name_says_what_it_is(run: Run) -> None:
    result = run(SHIPPED, "-o", "json", "--policy", "koordinator", "--peer", "koordinator", "--peer", "katalyst")
    names = [row["name"] for row in json.loads(result.stdout)["rows"]]
    assert names == ["static", "koordinator", "koordinator (peer)", "katalyst"]


def test_several_settings_of_one_policy_and_peer_have_names_of_their_own(run: Run) -> None:
    policies = ["--policy", "canonical", "--policy", "canonical=wide:reserve_cores=8"]
    peers = ["--peer", "koordinator:suppress=85,reclaim=90", "--peer", "oracle"]
    result = run(SHIPPED, "-o", "json", "--batch-work", "0", *policies, *peers)
    found = json.loads(result.stdout)
    rows = {row["name"]: row for row in found["rows"]}
    assert list(rows) == ["static", "canonical", "wide", "koordinator:suppress=85,reclaim=90", "oracle"]
    assert rows["wide"]["offered_core_hours"] < rows["canonical"]["offered_core_hours"]
    assert (rows["oracle"]["oracle_percent"], rows["oracle"]["violation_s"]) == (100.0, 0.0)
    assert found["batch"]["work_s"] is None


def test_the_first_column_is_what_can_run(run: Run) -> None:
    header = run(SHIPPED, "--policy", "canonical", "--batch-work", "300").stdout.splitlines()[3]
    assert header.split("  ")[0:1] == ["POLICY"]
    assert header.removeprefix("POLICY").strip().startswith("CAN RUN CORE-H")


def test_every_policy_is_compared_and_says_the_same_in_every_process() -> None:
    """Standard output to the byte, whatever the order of sets and dicts; the speed is on standard error."""
    command = [sys.executable, "-m", "sublet", "replay", str(SHIPPED), "--peer", "katalyst"]
    first, again = (
        subprocess.run(command, capture_output=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    )
    assert first.stdout == again.stdout
    lines = first.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[4 : lines.index("", 4)]] == ["static", *known_policies(), "katalyst"]
    assert first.stdout.decode().startswith(GOLDEN)
    assert re.search(rb"\d+ times real time", first.stderr)


def test_what_a_policy_claimed_stands_below_the_table_beside_what_came_true(run: Run) -> None:
    known = run(SHIPPED, "--policy", "adaptive", "--policy", "canonical").stdout.splitlines()
    told = [re.split(r"  +", line) for line in known[known.index("", 4) + 1 :]]
    assert [row[:2] for row in told[1:]] == [["adaptive", span] for span in ("a round", "10 s", "60 s", "300 s")]
    rows = json.loads(run(SHIPPED, "--policy", "adaptive", "--policy", "canonical", "-o", "json").stdout)["rows"]
    forecasts = {row["name"]: row["forecasts"] for row in rows}
    assert forecasts["canonical"] == forecasts["static"] == []
    assert [row[2:] for row in told[1:]] == [
        [str(one["cases"]), f"{one['claimed_percent']:.1f}", f"{one['covered_percent']:.1f}"]
        for one in forecasts["adaptive"]
    ]
    assert "forecast" not in run(SHIPPED, "--policy", "canonical").stdout.lower(), "canonical makes none"


def test_the_page_is_the_same_every_time_and_draws_every_row(run: Run, tmp_path: Path) -> None:
    texts = []
    for name in ("one.html", "two.html"):
        result = run(SHIPPED, "--policy", "canonical", "--peer", "katalyst", "--plot", tmp_path / name)
        assert result.exit_code == 0
        texts.append((tmp_path / name).read_text())
    text, again = texts
    assert text == again
    assert text.count('data-chart="') == 4  # three rows, and offer against violations
    assert '"lack":true' in text


def test_without_a_violation_the_page_says_so(run: Run, small: Path, tmp_path: Path) -> None:
    assert run(small, "--policy", "canonical:reserve_cores=40", "--plot", tmp_path / "out.html").exit_code == 0
    text = (tmp_path / "out.html").read_text()
    assert "Nobody withheld anything" in text
    assert text.count('data-chart="') == 2


def test_a_name_in_a_file_cannot_write_into_the_page(run: Run, small: Path, tmp_path: Path) -> None:
    evil = tmp_path / "<script>x.jsonl.gz"
    evil.write_bytes(small.read_bytes())
    run(evil, "--policy", "canonical", "--plot", tmp_path / "out.html")
    assert "<script>x" not in (tmp_path / "out.html").read_text()


def outcome_row(name: str, offered_percent: float | None, violation_ppm: float | None) -> dict[str, Any]:
    return {"name": name, "offered_percent": offered_percent, "violation_ppm": violation_ppm}


@pytest.mark.parametrize(
    ("rows", "best", "words"),
    [
        pytest.param([("a", 40.0, 0.0), ("b", 50.0, 0.0)], {"b"}, "b offers 50.0 %", id="more at the same"),
        pytest.param([("a", 40.0, 0.0), ("b", 50.0, 9.0)], {"a", "b"}, "a offers 40.0 %", id="each has its price"),
        pytest.param([("a", 40.0, 9.0), ("b", 40.0, 9.0)], {"a", "b"}, "at 9 ppm", id="equals"),
        pytest.param([("a", 40.0, 9.0), ("b", 30.0, 10.0)], {"a"}, "a offers", id="worse in both"),
        pytest.param([("a", None, None)], set(), "Nothing was decided", id="nothing counted"),
        pytest.param([("a", 40.0, None), ("b", 40.0, 1.0)], {"a"}, "a offers", id="no tenant wanted anything"),
    ],
)
def test_the_best_row_at_equal_violations(
    rows: list[tuple[str, float | None, float | None]], best: set[str], words: str
) -> None:
    found = [outcome_row(*row) for row in rows]
    assert best_rows(found) == best
    assert words in headline(found, best)


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        (["--policy", "nothing"], BadConfig, "nothing"),
        (["--peer", "katalist"], BadConfig, "did you mean katalyst"),
        (["--peer", "oracle:far=1"], BadConfig, "no knobs"),
        (["--peer", "koordinator:suppress=200"], BadConfig, "at most 100"),
        (["--policy", "canonical="], BadConfig, "want NAME, or NAME:key=value"),
        (["--policy", "canonical=a", "--policy", "model=a"], BadConfig, "--policy a: stands twice"),
        (["--format", "csv"], Refused, "want the header"),
        (["--plot", "/dev/null/x.html"], Refused, "x.html"),
        (["--plot", "out.html", "--plot-node", "other"], Refused, "other"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Run,
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    error: type[SubletError],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(small, *arguments)
    assert isinstance(result.exception, error)
    assert word in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize("option", ["--step", "--pod-cores", "--batch-pod-cores", "--evict-after", "--batch-work"])
@pytest.mark.parametrize("value", ["nan", "-1", "inf", "x"])
def test_a_number_that_is_none_is_refused(run: Run, small: Path, option: str, value: str) -> None:
    result = run(small, option, value)
    assert result.exit_code == 2
    assert option in result.stderr


def test_a_cut_file_is_replayed_and_the_loss_is_said(run: Run, small: Path) -> None:
    plain = gzip.decompress(small.read_bytes())
    small.write_bytes(plain[: len(plain) // 2])
    result = run(small, "--policy", "canonical", "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["lost_frames"] == 1
    assert "lost: 1 frame" in result.stderr
    assert "1 lost or refused" in run(small, "--policy", "canonical").stdout


def test_a_file_without_a_frame_is_refused(run: Run, small: Path) -> None:
    head = gzip.decompress(small.read_bytes()).splitlines(keepends=True)[0]
    small.write_bytes(head)
    result = run(small, "--policy", "canonical")
    assert isinstance(result.exception, Refused)
    assert "no frame" in str(result.exception)


def test_the_rule_of_a_trace_is_printed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "use.csv"
    path.write_text("time_s,id,usage_cores\n0,a,1\n0,b,2\n60,a,3\n60,b,2\n")
    result = run(path, "--policy", "canonical", "--seed", "7", "--pod-cores", "3")
    assert "2 tenants of 3 cores on 48 CPUs, seed 7; a frame every 30 s, values held" in result.stdout


def test_amounts_of_cores_are_swept_over_the_tenants_of_a_trace_and_not_over_a_recording(
    run: Run, small: Path, tmp_path: Path
) -> None:
    path = tmp_path / "day.csv"
    path.write_text("".join(f"m{n},{','.join(['50'] * 288)}\n" for n in range(24)))
    result = run(
        path, small, "--policy", "canonical", "--pod-cores", "2,4", "--cpus", "8", "--nodes", "1", "-o", "json"
    )
    found = json.loads(result.stdout)
    assert found["nodes"] == 3
    assert [rule.split(" on ")[0] for rule in found["frames_made_by"]] == [
        "4 tenants of 2 cores",
        "2 tenants of 4 cores",
    ]


@pytest.mark.parametrize("text", ["1,x", "1,", "0,1", "2,2", ",".join(map(str, range(1, 19)))])
def test_amounts_of_cores_that_are_none_are_refused(run: Run, small: Path, text: str) -> None:
    result = run(small, "--pod-cores", text)
    assert result.exit_code == 2
    assert "--pod-cores" in result.stderr


def test_a_long_curve_is_drawn_in_few_columns_and_loses_no_violation() -> None:
    curve = Curve()
    for n in range(10_000):
        curve.at_s.append(2.0 * (n + 1))
        curve.wanted_cores.append(40.0 if n == 7777 else 5.0)
        curve.room_cores.append(10.0)
        curve.offered_cores.append(38.0)
        curve.violated.append(n == 7777)
    found = bins(curve)
    assert len(found) <= MAX_BINS
    assert (found[0].from_s, found[-1].to_s) == (0.0, 20_000.0)
    assert [column.missing_cores for column in found if column.violated] == [30.0]
    assert all(one.to_s == two.from_s for one, two in pairwise(found))
