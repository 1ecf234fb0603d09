"""A replay over several processes says what one process says, to the byte."""

from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import Refused
from sublet.replay import generate
from sublet.replay.batch import BatchRules
from sublet.replay.job import JobPart, ReplayJob, joined, run_job, usual_processes
from sublet.replay.report.table import document
from sublet.replay.traces.tenants import Packing

PEERS = ("katalyst", "koordinator:suppress=85", "oracle")


@pytest.fixture
def job(tmp_path: Path) -> ReplayJob:
    """Five nodes of a CSV, whose second half has a fault, and a recording."""
    rows = ["time_s,id,usage_cores"]
    rows += [f"{60 * n},t{tenant},{(n * 7 + tenant * 3) % 5 + tenant / 10}" for tenant in range(10) for n in range(12)]
    (tmp_path / "use.csv").write_text("\n".join([*rows, "0,bad,x"]) + "\n")
    with (tmp_path / "small.jsonl.gz").open("wb") as out:
        generate.write(out, seed=5, length_s=60.0)
    paths = (tmp_path / "use.csv", tmp_path / "small.jsonl.gz")
    return ReplayJob(paths, "auto", Packing(cpus=8, pods_per_node=2), ("canonical",), PEERS, BatchRules())


@pytest.mark.parametrize(("row_step", "node_step"), [(1, 1), (1, 2), (2, 1), (2, 3), (5, 7)])
@pytest.mark.parametrize("plot_node", [None, "", "use-3", "nobody"])
def test_parts_add_up_to_the_whole(job: ReplayJob, row_step: int, node_step: int, plot_node: str | None) -> None:
    job = replace(job, plot_node=plot_node)
    whole = run_job(job, 1)
    parts = [JobPart(job, row, row_step, node, node_step) for node in range(node_step) for row in range(row_step)]
    found = joined([part.replayed() for part in parts], row_step)
    assert found == whole
    assert len(found.nodes) == 6
    assert [row.curve is not None for row in found.rows] == [plot_node in ("", "use-3")] * 5


def test_several_processes_say_what_one_says(job: ReplayJob) -> None:
    one, several = (document(run_job(job, processes), ["x"], job.rules) for processes in (1, 3))
    assert one == several
    assert one["refused_frames"] == 1


def test_what_a_process_refuses_is_said(job: ReplayJob) -> None:
    job.paths[0].write_text("time_s,id,usage_cores\n")
    with pytest.raises(Refused, match=r"use\.csv: no row can be used"):
        run_job(job, 2)


def test_a_short_recording_is_not_worth_a_process_and_a_trace_is(
    job: ReplayJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(4))
    assert usual_processes(job) == 4
    assert usual_processes(replace(job, paths=job.paths[1:])) == 1
    many = tuple(f"canonical=c{n}" for n in range(20))
    assert usual_processes(replace(job, paths=job.paths[1:] * 2, policies=many)) == 4


def test_no_process_reads_the_files_without_a_part_of_its_own(job: ReplayJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(16))
    rows = tuple(f"canonical=c{n}" for n in range(15))
    asked = {
        "one recording, its rows in two": (replace(job, paths=job.paths[1:], policies=rows), 2),
        "all tenants on one node": (replace(job, packing=Packing(cpus=8)), 2),
        "three nodes asked for, and a recording": (replace(job, packing=Packing(pods_per_node=2, nodes=3)), 4),
        "the same in two sizes": (replace(job, packing=Packing(pods_per_node=2, nodes=3, swept=(2.0, 4.0))), 7),
        "ten files of one VM each, two on a node": (replace(job, paths=job.paths * 5, file_format="bitbrains"), 5),
        "nobody knows how many": (job, 16),
    }
    found = {what: usual_processes(one) for what, (one, _) in asked.items()}
    assert found == {what: wanted for what, (_, wanted) in asked.items()}
