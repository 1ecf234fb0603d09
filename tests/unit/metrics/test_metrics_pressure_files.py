"""Which pressure files metrics arms: the kernel's own, in a container too, and no plain file of a simulation."""

from pathlib import Path

import pytest

from services.metrics.adapters.pressure_triggers import pressure_files

MACHINE = ["/proc/pressure/cpu", "/proc/pressure/memory"]
GROUP = Path("/sys/fs/cgroup/kubepods.slice")


def test_on_a_host_the_machines_and_those_of_its_groups() -> None:
    assert pressure_files(Path("/"), []) == MACHINE
    assert pressure_files(Path("/"), [GROUP]) == [*MACHINE, f"{GROUP}/cpu.pressure", f"{GROUP}/memory.pressure"]


def test_in_a_container_the_machines_by_its_own_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path / "proc")
    assert pressure_files(tmp_path, [GROUP]) == MACHINE


def test_below_a_folder_of_plain_files_none(tmp_path: Path) -> None:
    (tmp_path / "proc/pressure").mkdir(parents=True)
    assert pressure_files(tmp_path, [GROUP]) == []
    assert pressure_files(tmp_path / "missing", [GROUP]) == []
