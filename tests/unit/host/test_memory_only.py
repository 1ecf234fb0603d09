"""Who keeps the state in memory is told what that costs; who keeps it on a disk is not."""

from pathlib import Path

import pytest

from shared.adapters.host import hostfs
from shared.adapters.host.hostfs import lies_in_memory
from sublet.state import memory_only
from sublet.state.claim import claim_state
from sublet.state.memory_only import memory_only_words


@pytest.fixture(params=["tmpfs", "ramfs", "ext4", "overlay", ""])
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the folder of the test lies on; "" for a device that the kernel does not list."""
    found = {tmp_path.stat().st_dev: str(request.param)} if request.param else {}
    monkeypatch.setattr(hostfs, "_file_systems", lambda: found)
    return str(request.param)


def test_a_folder_lies_in_memory_by_its_file_system_also_before_it_is_made(kind: str, tmp_path: Path) -> None:
    assert lies_in_memory(tmp_path) is (kind in ("tmpfs", "ramfs"))
    assert lies_in_memory(tmp_path / "not/made/yet") is (kind in ("tmpfs", "ramfs"))


def test_it_costs_the_history_and_says_where_to_keep_it(kind: str, tmp_path: Path) -> None:
    said = list[str]()
    claim_state(tmp_path / "state", said.append).release()
    costs = [line for line in said if "a reboot loses the history of evictions" in line]
    assert len(costs) == (kind in ("tmpfs", "ramfs"))
    assert all("SUBLET_STATE_DIR=/var/lib/sublet" in line for line in costs)


def test_the_root_of_the_kernels_own_processes_is_told_from_a_disk() -> None:
    assert isinstance(lies_in_memory(Path("/")), bool)
    assert memory_only_words(Path("/proc")) == ""
    assert memory_only.COST in memory_only_words(Path("/dev/shm")) or not Path("/dev/shm").is_mount()
