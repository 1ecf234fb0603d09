"""A simulator that is killed at any moment goes on where it was: steps once, loads as they were, time that goes on."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.adapters.local.pods import LocalPods
from shared.core.cgroups.layout import container_group
from shared.core.pods.manifest import read_pod
from sublet.load.demand import LOAD, STOP_AFTER
from sublet.sim.host import SimHost
from sublet.sim.live.loop import KeptProgress
from sublet.sim.live.story import Story
from sublet.sim.machine import SimMachine
from sublet.sim.progress import SimProgress, read_progress
from sublet.sim.scenario import Scenario, read_scenario

MACHINE = SimMachine(sockets=1, cores_per_numa=2, memory="8Gi")


def pod(name: str, **annotations: str) -> dict[str, Any]:
    meta = {"name": name, "annotations": {STOP_AFTER: "1", **annotations}}
    container = {"name": "main", "command": ["stress", "-c", "1"]}
    return {"kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}


STORY = read_scenario(
    {
        "name": "story",
        "again_at_s": 40,
        "steps": [
            {"at_s": 0, "apply": [pod("web"), pod("batch")]},
            {"at_s": 10, "exec": {"pod": "web", "command": ["stress", "-c", "2"]}},
            {"at_s": 20, "delete": "batch"},
            {"at_s": 30, "delete": "web"},
        ],
    },
    source="test",
)


class Life:
    """One life of the simulator's process; the next one has the same folders and nothing else."""

    def __init__(self, folder: Path, scenario: Scenario = STORY) -> None:
        self.host = SimHost.create(folder / "host", MACHINE, folder / "state")
        self.file = folder / "state/sim.json"
        self.host.progress, self.kept = read_progress(self.file), KeptProgress(self.file)
        self.story = Story(scenario)
        self.story.take_up(self.host)

    def turn(self, now_s: float) -> None:
        self.host.step(now_s)
        self.story.perform_due(self.host)
        self.kept.save(self.host.progress, now_s)

    def tasks(self) -> dict[str, int]:
        """The runnable threads of each pod that runs."""
        groups = {item.record.pod.key: container_group(item.record.pod, "main") for item in self.host.pods.stored()}
        pids = self.host.kernel.groups.cgroups.pids
        return {key.removeprefix("default/"): len(pids(groups[key])) - 1 for key in self.host.running()}


def played(folder: Path, kills: frozenset[int], turns: int) -> list[dict[str, int]]:
    """What runs after each turn of one second; before the turns in `kills` the process is killed."""
    life, seen = Life(folder), []
    for turn in range(turns):
        if turn in kills:
            life = Life(folder)
            life.turn(turn - 1.0)  # a new process sets its clock first: no time passes
        life.turn(float(turn))
        seen.append(life.tasks())
    return seen


@settings(max_examples=4)
@given(kills=st.frozensets(st.integers(1, 89), min_size=1, max_size=6))
def test_kills_change_nothing_of_a_story(tmp_path_factory: pytest.TempPathFactory, kills: frozenset[int]) -> None:
    whole = played(tmp_path_factory.mktemp("whole"), frozenset(), 90)
    assert whole[15] == {"web": 3, "batch": 1}
    assert whole[25] == {"web": 3}
    assert whole[35] == {}
    assert whole[60] == {"web": 3, "batch": 1} or whole[61] == {"web": 3}
    killed = played(tmp_path_factory.mktemp("killed"), kills, 90)
    # A pod that is asked to end when its machine goes down has its grace anew: a moment later, never something else.
    moments = [turn for turn in range(2, 90) if killed[turn] not in whole[turn - 2 : turn + 3]]
    assert moments == []


def test_a_step_whose_pod_was_started_right_before_a_kill_is_not_done_twice(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.host.step(0.0)
    life.story.perform_due(life.host)  # killed before the progress was kept
    again = Life(tmp_path)
    assert again.host.progress.steps == 0
    again.turn(1.0)
    assert again.host.progress.steps == 1
    assert len(again.host.pods.stored()) == 2


def test_a_pod_whose_name_is_still_taken_by_one_that_ends_waits_for_it(tmp_path: Path) -> None:
    scenario = read_scenario(
        {"name": "swap", "steps": [{"at_s": 0, "apply": [pod("web")]}, {"at_s": 5, "delete": "web"},
                                   {"at_s": 5, "apply": [pod("web")]}]}, source="test")  # fmt: skip
    life = Life(tmp_path, scenario)
    for now_s in range(6):
        life.turn(float(now_s))
    first = life.host.pods.find("web").record.pod.uid
    assert life.host.progress.steps == 2
    for now_s in range(6, 10):
        life.turn(float(now_s))
    assert life.host.progress.steps == 3
    assert life.host.pods.find("web").record.pod.uid != first


def test_a_curve_goes_on_where_it_was_and_runs_as_fast_as_the_machine_is_told(tmp_path: Path) -> None:
    def tasks(life: Life) -> int:
        return life.tasks()["batch"]

    LocalPods(tmp_path / "state").add(read_pod(pod("batch", **{LOAD: "ramp:0..4:40s"}), "0b").record)
    idle = read_scenario({"name": "idle", "steps": [{"at_s": 0, "say": "nothing"}]}, source="test")
    life = Life(tmp_path, idle)
    life.host.speed = 10.0
    life.turn(0.0)
    life.turn(1.0)
    assert tasks(life) == 1
    life.turn(2.5)
    assert tasks(life) == 3
    again = Life(tmp_path, idle)
    again.host.speed = 10.0
    again.turn(100.0)
    assert tasks(again) == 3
    again.turn(101.0)
    assert tasks(again) == 4


def test_another_scenario_begins_anew(tmp_path: Path) -> None:
    Life(tmp_path).turn(0.0)
    other = STORY.model_copy(update={"again_at_s": 50.0})
    assert Life(tmp_path, other).host.progress.steps == 0
    assert Life(tmp_path).host.progress.steps == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"time_s": -1}', '{"steps": "many"}', '{"pods": {"../x": {}}}', "\xff"]
)
def test_a_progress_that_cannot_be_read_begins_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "sim.json").write_text(text, encoding="latin-1")
    assert read_progress(tmp_path / "sim.json") == SimProgress()


def test_a_progress_that_cannot_be_kept_does_not_end_the_machine(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    KeptProgress(tmp_path / "taken/sim.json").save(SimProgress(steps=1), 0.0)


def test_time_alone_is_kept_once_a_second_and_a_step_at_once(tmp_path: Path) -> None:
    kept, file = KeptProgress(tmp_path / "sim.json"), tmp_path / "sim.json"
    for now_s, progress in ((0.0, SimProgress(time_s=0)), (0.5, SimProgress(time_s=0.5))):
        kept.save(progress, now_s)
    assert read_progress(file).time_s == 0
    kept.save(SimProgress(time_s=0.6, steps=1), 0.6)
    assert read_progress(file).time_s == 0.6
    kept.save(SimProgress(time_s=1.7, steps=1), 1.7)
    assert read_progress(file).time_s == 1.7
