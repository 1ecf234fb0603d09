"""What others did on the machine during a measurement, and what is measured again because of it."""

import os
from pathlib import Path

import pytest

from bench.rigs.disturbance import Disturbance, Moment, Process, Tries, between, moment
from bench.rigs.processes import TICKS_PER_S

HERE, OTHER, SHELL = (10, 1), (20, 2), (30, 3)
CALM, BUSY, BUSIER = (Disturbance(others, 0.0, None, 0.1) for others in (0.01, 0.2, 0.3))
Processes = dict[tuple[int, int], Process]


def at(at_s: float, processes: Processes, *, jiffies: int = 0, steal: int = 0, waiting_us: int | None = None) -> Moment:
    return Moment(at_s, jiffies, steal, waiting_us, processes)


def others(before: Processes, after: Processes) -> float:
    """Their share of two CPUs over ten seconds."""
    return between(at(0.0, before), at(10.0, after), cpus=2, load=0.0).others


def test_what_the_measurement_uses_itself_is_no_disturbance() -> None:
    before = {HERE: Process(1, 5.0, True), OTHER: Process(1, 7.0, False)}
    after = {HERE: Process(1, 15.0, True), OTHER: Process(1, 9.0, False)}
    assert others(before, after) == pytest.approx(0.1)


def test_a_process_that_came_meanwhile_counts_whole() -> None:
    assert others({}, {OTHER: Process(1, 4.0, False)}) == pytest.approx(0.2)


def test_what_an_ended_process_had_used_before_is_no_work_of_the_span() -> None:
    long_ago = {SHELL: Process(1, 1.0, False), OTHER: Process(SHELL[0], 60.0, False)}
    assert others(long_ago, {SHELL: Process(1, 63.0, False)}) == pytest.approx(0.1)


def test_what_a_whole_family_had_used_is_its_oldest_living_members() -> None:
    middle, child = (40, 4), (50, 5)
    before = {
        SHELL: Process(1, 0.0, False),
        middle: Process(SHELL[0], 20.0, False),
        child: Process(middle[0], 40.0, False),
    }
    assert others(before, {SHELL: Process(1, 62.0, False)}) == pytest.approx(0.1)


def test_a_number_that_is_given_anew_is_another_process() -> None:
    before, after = {(20, 2): Process(1, 9.0, False)}, {(20, 8): Process(1, 2.0, False)}
    assert others(before, after) == pytest.approx(0.1)


def test_steal_and_waiting_are_told_where_the_kernel_tells_them() -> None:
    found = between(
        at(0.0, {}, waiting_us=0), at(10.0, {}, jiffies=1000, steal=30, waiting_us=500_000), cpus=2, load=1.5
    )
    assert [found.steal, found.waiting or 0.0, found.load] == pytest.approx([0.03, 0.05, 1.5])
    assert found.too_much
    assert str(found) == "DISTURBED: others 0%, steal 3%, waiting 5%, load 1.5"


def test_the_counters_of_this_machine_can_be_read() -> None:
    found = moment()
    assert any(one.ours for one in found.processes.values())
    assert found.jiffies > 0


def test_ours_is_what_the_measurement_started_and_what_runs_in_a_group_of_ours(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 8 9 10\n")
    rows = {1: (0, "/"), os.getpid(): (1, "/user"), 900_001: (os.getpid(), "/user"),
            900_002: (1, "/sublet-kubernetes/x"), 900_003: (1, "/user"), 900_004: (900_002, "/")}  # fmt: skip
    for pid, (parent, group) in rows.items():
        folder = tmp_path / str(pid)
        folder.mkdir()
        fields = ["S", parent, *[0] * 9, 100, 100, 300, 300, *[0] * 4, pid]
        (folder / "stat").write_text(f"{pid} (a) name) {' '.join(map(str, fields))}\n")
        (folder / "cgroup").write_text(f"3:cpuset:{group}\n")
    found = moment(tmp_path).processes
    assert {pid for pid, _ in found if not found[pid, pid].ours} == {1, 900_003}
    # Init has waited for children of everybody.
    assert (found[1, 1].used_s, found[900_003, 900_003].used_s) == (200 / TICKS_PER_S, 800 / TICKS_PER_S)


def test_a_kernel_without_pressure_says_nothing_of_waiting(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  1 2 3 4 5 6 7 8 9 10\n")
    assert moment(tmp_path).waiting_us is None


def test_an_undisturbed_measurement_is_made_once() -> None:
    tries = Tries[str]()
    tries.add("first", CALM)
    assert not tries.wanted()


def test_a_disturbed_measurement_is_made_again_until_one_is_calm_or_the_bound_is_met() -> None:
    tries = Tries[str](repeats=2)
    for name, disturbance in (("first", BUSIER), ("second", BUSY)):
        assert tries.wanted()
        tries.add(name, disturbance)
    assert tries.wanted()
    tries.add("third", BUSIER)
    assert not tries.wanted()
    assert tries.best == ("second", BUSY)
