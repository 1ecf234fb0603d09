"""`sublet recommend` as users type it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from decisions_world import ClusterStory, workload
from typer.testing import CliRunner, Result

from shared.errors import Refused
from sublet.commands import recommend

SHIPPED = Path(__file__).parents[3] / "examples" / "traces" / "web-and-batch.jsonl.gz"
Run = Callable[..., Result]
"""Runs the command with these arguments."""


@pytest.fixture
def run() -> Run:
    app = typer.Typer()
    app.command()(recommend.recommend)

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


def test_the_shipped_recording_is_recommended_for(run: Run) -> None:
    result = run(SHIPPED)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "web-and-batch.jsonl.gz: 20m0s, 601 frames"
    assert lines[3].startswith("together cpu: 36 requested, ")
    row = next(line for line in lines if line.startswith("shop/Deployment/cart"))
    assert row.split()[-1] == "HistoryTooShort"
    assert "given over time" not in result.stdout
    assert run(SHIPPED).stdout == result.stdout


def test_wide_adds_what_would_have_been_given(run: Run) -> None:
    result = run(SHIPPED, "-o", "wide", "--min-history", "600")
    assert "given over time, and what was used meanwhile:" in result.stdout
    assert "HistoryTooShort" not in result.stdout


def test_a_larger_buffer_asks_for_more_and_is_exceeded_less(run: Run) -> None:
    def cart(buffer: int) -> tuple[int, float]:
        found = json.loads(run(SHIPPED, "-o", "json", "--buffer", buffer).stdout)
        cpu = found["workloads"][0]["containers"][0]["cpu"]
        return cpu["recommended"], cpu["above_recommended_percent"]

    (little, often), (much, seldom) = cart(0), cart(100)
    assert little < much
    assert often > seldom


def test_a_recording_that_is_cut_is_used_as_far_as_it_goes(run: Run, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(SHIPPED.read_bytes()[:50_000])
    result = run(cut)
    assert result.exit_code == 0
    assert "no end line: the recorder was killed, or the file is cut" in result.stderr


def test_frames_that_cannot_be_used_are_named(run: Run, tmp_path: Path) -> None:
    lines = gzip.decompress(SHIPPED.read_bytes()).splitlines()
    lines[5:5] = [b'{"t":7,"what":"nobody knows"}', b"[]", lines[2]]
    odd = tmp_path / "odd.jsonl"
    odd.write_bytes(b"\n".join(lines) + b"\n")
    result = run(odd)
    assert result.exit_code == 0
    assert "line 6: " in result.stderr
    assert "out of order: t 2 s after 6 s" in result.stderr
    assert ", 3 lost or refused" in result.stdout


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no recording"),
        (b"time_s,id,usage_cores\n0,a,1\n", "no recording"),
        (b'{"sublet": "recording", "v": 9}\n', "reads version 1"),
        (b'{"sublet": "recording", "v": 1, "node": "n", "cpus": 4, "smt": true}\n', "no frame can be used"),
    ],
)
def test_what_is_no_recording_is_refused(run: Run, tmp_path: Path, content: bytes, word: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    result = run(path)
    assert isinstance(result.exception, Refused)
    assert word in str(result.exception)


def test_a_file_that_is_not_there_is_refused(run: Run, tmp_path: Path) -> None:
    assert "no such file" in str(run(tmp_path / "none").exception)


def of_cluster(*, killed: bool) -> bytes:
    """Ten minutes of a Deployment, as a cluster's recording has it; at their end its container was killed or not."""
    story = ClusterStory()
    workload(story)
    for number in range(40):
        story.uses(1.0 + number % 3, 200)
        story.wait(15)
    if killed:
        ended = {"reason": "OOMKilled", "finishedAt": story.now.isoformat()}
        workload(story, {"containerStatuses": [{"name": "main", "lastState": {"terminated": ended}}]})
    story.wait(15)
    story.uses(1.0, 200)
    return story.close()


def test_a_recording_of_a_cluster_is_recommended_for_with_its_kills(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cluster.gz"
    path.write_bytes(of_cluster(killed=False))
    quiet = json.loads(run(path, "-o", "json").stdout)
    (found,) = quiet["workloads"]
    assert (found["kind"], found["name"], found["pods"], quiet["kills"]) == ("Deployment", "web", 1, 0)
    (container,) = found["containers"]
    assert container["cpu"]["requested"] == 2000
    assert container["memory"]["recommended"] < 300 << 20
    path.write_bytes(of_cluster(killed=True))
    lifted = json.loads(run(path, "-o", "json").stdout)
    assert lifted["kills"] == 1
    # 512Mi were too little: 1.2 times that, and 100Mi more at least.
    assert lifted["workloads"][0]["containers"][0]["memory"]["recommended"] == 615 << 20
    assert "1 container was killed for want of memory" in run(path).stdout


def test_a_recording_of_a_cluster_stands_alone(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cluster.gz"
    path.write_bytes(of_cluster(killed=False))
    assert "stands alone" in str(run(SHIPPED, path).exception)
