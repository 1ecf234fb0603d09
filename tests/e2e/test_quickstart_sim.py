"""The quick start on the simulated 48-CPU machine, with the real services: its figures are golden."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from shared.errors import BadConfig
from sublet.sim.report import Report, ReportRow, SimView, as_document
from sublet.sim.run import run_scenario
from sublet.sim.scenario import Scenario, load_scenario, read_scenario

MEMORY = 195_257_901_056
SHARE_4, RECLAIM_44 = "11,23,35,47", "0-10,12-22,24-34,36-46"
SHARE_6, RECLAIM_42 = "11,22-23,35,46-47", "0-10,12-21,24-34,36-45"
SHARE_8, RECLAIM_40 = "10-11,22-23,34-35,46-47", "0-9,12-21,24-33,36-45"
BY_RECLAIMED = (
    "reason: met threshold in scope: katalyst.kubewharf.io/reclaimed_millicpu "
    "from plugin: reclaimed-resource-pressure-eviction-plugin"
)
BY_MEMORY = "reason: met threshold in scope: memory from plugin: memory-pressure-eviction-plugin"

Version = Literal[1, 2]


def story(version: Version, name: str) -> Scenario:
    scenario = load_scenario(name)
    machine = scenario.machine.model_copy(update={"cgroup_version": version})
    return scenario.model_copy(update={"machine": machine})


@cache
def played(version: Version, name: str) -> Report:
    """One run serves all tests that only look at it."""
    return run_scenario(story(version, name))


def last_before(report: Report, t_s: float) -> SimView:
    return [row for row in report.rows if row.t_s < t_s][-1].view


def events(report: Report) -> list[ReportRow]:
    return [row for row in report.rows if row.event]


@pytest.mark.parametrize("version", [1, 2], ids=["cgroup-v1", "cgroup-v2"])
def test_the_quick_start_gives_the_figures_of_the_tutorial(version: Version) -> None:
    report = played(version, "quickstart")
    assert report.problems == []
    idle, pod, peak = (last_before(report, t_s) for t_s in (60, 120, 330))
    assert (idle.reclaimed_millicpu, idle.reclaimed_memory) == (44_000, MEMORY)
    assert (idle.share, idle.reclaim) == (SHARE_4, RECLAIM_44)
    assert (pod.share, pod.reclaim, pod.reclaimed_millicpu) == (SHARE_6, RECLAIM_42, 42_000)
    assert (peak.share, peak.reclaim, peak.reclaimed_millicpu) == (SHARE_8, RECLAIM_40, 40_000)
    assert events(report) == []


@pytest.mark.parametrize("version", [1, 2], ids=["cgroup-v1", "cgroup-v2"])
def test_over_commit_evicts_the_larger_reclaimed_pod_above_five_times_the_offer_not_below_ten(version: Version) -> None:
    report = played(version, "overcommit")
    assert report.problems == []
    assert last_before(report, 330).reclaimed_millicpu == 4_000
    told = [row.what for row in events(report)]
    assert f"created pod/reclaimed-large-pod-2  Successfully create eviction; {BY_RECLAIMED}" in told
    assert f"succeeded pod/reclaimed-large-pod-2  Evicted pod has been deleted physically; {BY_RECLAIMED}" in told
    assert all("reclaimed-large-pod-2" in what for what in told)
    assert min(row.t_s for row in events(report)) >= 330


@pytest.mark.parametrize("version", [1, 2], ids=["cgroup-v1", "cgroup-v2"])
def test_short_memory_evicts_the_reclaimed_pod_that_uses_the_most(version: Version) -> None:
    report = played(version, "memory")
    assert report.problems == []
    told = [row.what for row in events(report)]
    assert f"created pod/reclaimed-large-pod-2  Successfully create eviction; {BY_MEMORY}" in told
    assert f"succeeded pod/reclaimed-large-pod-2  Evicted pod has been deleted physically; {BY_MEMORY}" in told


@pytest.mark.parametrize("name", ["quickstart", "overcommit"])
def test_two_runs_of_a_scenario_give_the_same_bytes(name: str) -> None:
    first, second = (json.dumps(as_document(told)) for told in (run_scenario(story(2, name)), played(2, name)))
    assert first == second


def test_a_story_that_does_not_come_true_is_said_and_fails() -> None:
    steps = [{"at_s": 0, "within_s": 20, "expect": {"reclaimed_millicpu": "43k"}}]
    report = run_scenario(read_scenario({"name": "wrong", "steps": steps}, source="test"))
    assert report.problems == ["at 20 s: reclaimed_millicpu is 44000, expected 43000"]
    assert not report.ok


def test_a_step_that_cannot_be_done_is_a_problem_and_the_story_goes_on() -> None:
    steps = [
        {"at_s": 0, "apply": [{"kind": "Pod", "metadata": "none"}]},
        {"at_s": 1, "delete": "nobody"},
        {"at_s": 9, "expect": {"reclaimed_millicpu": "44k"}},
    ]
    report = run_scenario(read_scenario({"name": "odd", "steps": steps}, source="test"))
    assert [problem.partition(": ")[0] for problem in report.problems] == ["at 0 s", "at 1 s"]
    assert report.checks == 1


def test_a_reclaimed_pod_beyond_the_limit_of_its_class_is_killed_and_the_reason_is_told() -> None:
    scenario = load_scenario("memory")
    machine = scenario.machine.model_copy(update={"watermark_scale_factor": 700})
    report = run_scenario(scenario.model_copy(update={"machine": machine}))
    assert "default/reclaimed-large-pod-2 has ended: OOMKilled" in [row.what for row in report.rows]
    assert not report.ok


def test_a_setting_that_cannot_be_used_ends_the_run_before_it_begins() -> None:
    document = {"name": "bad", "settings": {"qrm": {"lease": 1}}, "steps": [{"at_s": 0, "say": "x"}]}
    with pytest.raises(BadConfig, match="did you mean 'lease_s'"):
        run_scenario(read_scenario(document, source="test"))


def command(*arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "sublet", "sim", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env})


def test_the_output_does_not_depend_on_the_order_of_hashes() -> None:
    one, other = (command("memory", "-o", "json", PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert one.returncode == 0, one.stdout
    assert one.stdout == other.stdout


def test_the_command_prints_the_golden_figures_as_a_table() -> None:
    done = command()
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for figure in ("44k", "42k", "40k", SHARE_6, SHARE_8, RECLAIM_42, RECLAIM_40):
        assert figure in done.stdout


def test_the_command_prints_json_and_fails_when_the_story_does_not_come_true(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("{name: wrong, steps: [{at_s: 9, expect: {share: '0'}}]}")
    done = command(str(path), "-o", "json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["ok"], document["problems"]) == (False, [f"at 9 s: share is {SHARE_4}, expected 0"])


def test_the_command_refuses_what_is_no_scenario() -> None:
    done = command("nothing")
    assert done.returncode == 2
    assert "no such file; built in: idle, memory, overcommit, quickstart, tide" in done.stderr
