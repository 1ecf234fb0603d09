"""What the demo reads of the machine: rates from counters that stand still, and who the CPU time belongs to."""

import os
from pathlib import Path

import pytest

from sublet.demo import batch
from sublet.demo.machine import reading
from sublet.demo.watch import CpuRates, TimelineRecorder, cpu_seconds


def test_a_counter_that_stands_still_does_not_fall_to_zero() -> None:
    """A simulated machine writes /proc/stat once a second; it is read ten times as often."""
    rates, seen = CpuRates(cpus=48), []
    for tenth in range(40):
        second = tenth // 10
        rates.add(busy_s=36.0 * second, all_s=48.0 * second, service_s=12.0 * second)
        seen.append((rates.busy_cores, rates.service_cores))
    assert set(seen[:10]) == {(None, None)}
    assert set(seen[10:]) == {(36.0, 12.0)}


def test_a_machine_that_falls_idle_is_seen_to() -> None:
    rates = CpuRates(cpus=2)
    for busy_s, all_s in ((0.0, 0.0), (2.0, 2.0), (2.0, 4.0)):
        rates.add(busy_s, all_s)
    assert rates.busy_cores == 0.0


def test_a_file_that_is_just_being_written_anew_ends_no_recording(tmp_path: Path) -> None:
    """A simulated machine empties a file before it writes it."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("")
    rates = CpuRates(cpus=2)
    with pytest.raises(IndexError):
        rates.add(*cpu_seconds(tmp_path))
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu cpuset memory\n")
    watch = TimelineRecorder([], host_root=tmp_path, cpus=2)
    watch.start()
    watch.stop()
    assert watch.moments == []


def process(root: Path, pid: int, parent: int, ticks: int, group: str = "/user.slice", name: str = "x) R 1 (") -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{pid} ({name}) S {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 500 500 0\n")
    (folder / "cgroup").write_text(f"3:cpu:{group}\n")


def stat(root: Path, user: int, idle: int, steal: int) -> None:
    (root / "proc/stat").write_text(f"cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\n")


def test_others_are_whoever_is_not_the_demos(tmp_path: Path) -> None:
    """This process, its children's children, and pods of Sublet that have another parent are its own."""
    clock = iter([10.0, 11.0])
    hz, me = os.sysconf("SC_CLK_TCK"), os.getpid()
    (tmp_path / "proc").mkdir()
    for pid, parent, group in (
        (1, 0, "/"),
        (me, 1, "/"),
        (me + 1, me, "/"),
        (me + 2, me + 1, "/"),
        (me + 3, 1, "/sublet/x"),
    ):
        process(tmp_path, pid, parent, 0, group)
    stat(tmp_path, 0, 0, 0)
    watch = reading.NoiseWatch(tmp_path, lambda: next(clock))
    for pid, parent, group in (
        (1, 0, "/"),
        (me, 1, "/"),
        (me + 1, me, "/"),
        (me + 2, me + 1, "/"),
        (me + 3, 1, "/sublet/x"),
    ):
        process(tmp_path, pid, parent, hz // 4, group)
    stat(tmp_path, 3 * hz, hz, hz)
    heard = watch.noise()
    assert heard.others_cores == pytest.approx(2.0)
    assert heard.steal_percent == pytest.approx(20.0)


def test_a_kernel_without_psi_says_nothing_of_waiting(tmp_path: Path) -> None:
    assert reading._waited_us(tmp_path) is None
    (tmp_path / "proc/pressure").mkdir(parents=True)
    (tmp_path / "proc/pressure/cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull total=9\n")
    assert reading._waited_us(tmp_path) == 123


@pytest.mark.parametrize(
    ("data", "count"), [(b"", 0), (bytes([1, 0, 0]), 0), (bytes([2] + 7 * [0] + [3] + 7 * [0]), 5)]
)
def test_units_of_all_processes_of_a_batch_are_added(tmp_path: Path, data: bytes, count: int) -> None:
    (tmp_path / "x").write_bytes(data)
    assert batch.units(tmp_path / "x") == count
    assert batch.units(tmp_path / "none") == 0
