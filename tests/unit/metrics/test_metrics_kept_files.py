"""Files that stay open: read anew each time, gone with what they told of, and never mistaken for another's."""

import os
import subprocess
from pathlib import Path

import pytest
from kernel_trees import KernelTree
from present import present

from services.metrics.adapters.host import HostReader
from services.metrics.core.figures.target import Target
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import SHORT_BYTES, KeptFiles, read_text


def test_a_file_of_the_kernel_stays_open_and_tells_what_is_now() -> None:
    files = KeptFiles()
    path = f"/proc/{os.getpid()}/comm"
    name = present(files.read(path))
    assert name == read_text(path)
    assert (len(files), files.inode(path)) == (1, Path(path).stat().st_ino)
    try:
        Path(path).write_text("renamed")
        assert files.read(path) == "renamed\n"
    finally:
        Path(path).write_text(name)
    files.close()
    assert (len(files), files.inode(path)) == (0, None)


@pytest.mark.parametrize("path", ["/proc/self/mountinfo", "/proc/self/maps", "/proc/self/status", "/proc/version"])
def test_long_and_short_files_are_read_to_their_end(path: str) -> None:
    files = KeptFiles()
    for _ in range(2):  # opened, and open
        assert len(present(files.read(path))) == pytest.approx(len(present(read_text(path))), rel=0.2)
    files.close()


def test_a_task_that_ended_is_absent_and_its_file_is_closed() -> None:
    files = KeptFiles()
    task = subprocess.Popen(["sleep", "60"])
    path = f"/proc/{task.pid}/stat"
    assert files.read(path)
    task.kill()
    task.wait()
    assert files.read(path) is None
    assert len(files) == 0


def test_a_number_is_read_anew_each_time_and_absent_once_its_task_has_ended() -> None:
    files = KeptFiles()
    task = subprocess.Popen(["sleep", "60"])
    path = f"/proc/{task.pid}/oom_score_adj"
    for score in (1, 1000, 7):
        Path(path).write_text(str(score))
        assert files.number(path) == score
    assert len(files) == 1
    task.kill()
    task.wait()
    assert (files.number(path), len(files)) == (None, 0)


def test_what_is_no_number_is_an_error() -> None:
    files = KeptFiles()
    for _ in range(2):  # opened, and open
        with pytest.raises(ValueError, match="invalid literal"):
            files.number("/proc/version")
    files.close()


@pytest.mark.parametrize("size", [0, 1, SHORT_BYTES - 1, SHORT_BYTES, SHORT_BYTES + 1, 70_000, 200_000])
def test_a_text_is_whole_however_short_its_first_part_may_be(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_text("x" * size)
    assert read_text(str(tmp_path / "file"), short_bytes=SHORT_BYTES) == read_text(str(tmp_path / "file")) == "x" * size


def test_a_plain_file_is_opened_each_time_since_it_may_be_another_one(tmp_path: Path) -> None:
    files, path = KeptFiles(), tmp_path / "cpuacct.usage"
    assert files.read(str(path)) is None
    path.write_text("1\n")
    assert files.read(str(path)) == "1\n"
    fresh = tmp_path / "fresh"
    fresh.write_text("2\n")
    fresh.rename(path)
    assert files.read(str(path)) == "2\n"
    assert (len(files), files.inode(str(path))) == (0, None)


def test_a_plain_file_is_looked_at_once_until_its_folder_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path, looks = KeptFiles(), tmp_path / "group/cpuacct.usage", list[int]()
    looked = os.fstat

    def counted(descriptor: int) -> os.stat_result:
        looks.append(descriptor)
        return looked(descriptor)

    monkeypatch.setattr(os, "fstat", counted)
    path.parent.mkdir()
    for number in range(3):
        path.write_text(f"{number}\n")
        assert files.read(str(path)) == f"{number}\n"
    path.unlink()
    assert files.read(str(path)) is None
    assert len(looks) == 1
    path.write_text("again\n")
    files.drop([str(path.parent)])
    assert files.read(str(path)) == "again\n"
    assert len(looks) == 2


def test_no_more_files_stay_open_than_the_limit_and_dropping_closes_a_folders() -> None:
    files = KeptFiles(limit=2)
    for name in ("stat", "status", "comm"):
        assert files.read(f"/proc/self/{name}")
    assert len(files) == 2
    files.drop(["/proc"])
    assert len(files) == 2, "only what lies right in the folder"
    files.drop(["/proc/self"])
    assert len(files) == 0


def test_a_file_that_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        KeptFiles().read(str(tmp_path))


def test_targets_that_are_measured_no_more_are_forgotten(tree: KernelTree) -> None:
    tree.group("sublet/shared_cores/podaa/main")
    host = HostReader(tree.root, Cgroups(tree.root))
    target = Target("container", "aa/main", "sublet/shared_cores/podaa/main", "share")
    folder = host.group_folder(target, "cpu")
    host.begin([target])

    def look(wait: int) -> tuple[float, int]:
        host.now_s += 1.0
        return host.tally(folder, {"7": wait}, ["7"], 1e9), host.turn("some", folder)

    assert [look(wait) for wait in (10, 25)] == [(0, 0), (15, 1)]
    host.begin([])
    host.begin([target])
    host.group_folder(target, "cpu")
    assert look(30) == (0, 0)


@pytest.mark.parametrize(("containers", "tasks"), [(0, 64), (8, 64), (50, 10), (128, 4), (250, 4)])
def test_tasks_to_read_are_shared_by_the_containers_and_each_has_four(
    tree: KernelTree, containers: int, tasks: int
) -> None:
    host = HostReader(tree.root, Cgroups(tree.root))
    host.begin([Target("container", f"{number}/main", f"sublet/{number}", "share") for number in range(containers)])
    assert host.most_tasks == tasks
