"""A state folder on the disk after a reboot: what only that boot knew is forgotten, the history stays."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.adapters.files import boot
from shared.adapters.files.boot import NAME, this_boot
from shared.adapters.local.pods import LocalPods
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.errors import Unfit
from sublet.state import folder as folder_module
from sublet.state.claim import claim_state
from sublet.state.files import MARK, STATE_FILES, Until
from sublet.state.folder import StateFolder

BEFORE, NOW = "0f4b0a52-0000-4000-8000-000000000001", "0f4b0a52-0000-4000-8000-000000000002"
UID = "11111111-2222-4333-8444-555555555555"
STAYS = sorted(one.name.replace("#", "1") for one in STATE_FILES if one.until is not Until.STOP)
ENDS = sorted(one.name for one in STATE_FILES if one.until is Until.STOP and one.name not in (NAME, "up.lock"))


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[StateFolder]:
    """A run that ends without a word: its lock goes, and everything else stays."""
    folder = StateFolder.claim(path)
    yield folder
    folder._lock.close()


@pytest.fixture
def reboot(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts the machine into a boot."""

    def into(name: str) -> None:
        monkeypatch.setattr(boot, "this_boot", lambda: name)

    into(BEFORE)
    return into


def crash(path: Path) -> None:
    """A run that a power cut ends: everything that it had lies there."""
    with claimed(path):
        pass
    for one in STATE_FILES:
        if (name := one.name.replace("#", "1")) in (MARK, NAME, "up.lock", "taints.json"):
            continue
        (path / name).mkdir() if one.folder else (path / name).write_text("{}")
    (path / "taints.json").write_text('{"taints": [{"key": "site.example/maintenance", "effect": "NoSchedule"}]}')
    LocalPods(path).add(PodRecord(pod=Pod(namespace="default", name="work", uid=UID, qos="reclaimed_cores")))


def test_after_a_reboot_the_history_stays_and_leases_fences_and_pods_are_gone(
    tmp_path: Path, reboot: Callable[[str], None]
) -> None:
    path = tmp_path / "state"
    crash(path)
    reboot(NOW)
    with claimed(path) as folder:
        assert folder.rebooted
    assert sorted(entry.name for entry in path.iterdir()) == sorted([*STAYS, NAME, "up.lock"])
    assert LocalPods(path).pods() == []
    assert {"ledger.db", "nats", "evictions.paused", "config.yaml"} <= {*STAYS}
    assert {"lease.json", "lease.fallen", "checkpoint.json", "up.json", "login.json", "pods"} <= {*ENDS}


def test_in_the_same_boot_everything_stays(tmp_path: Path, reboot: Callable[[str], None]) -> None:
    path = tmp_path / "state"
    crash(path)
    reboot(BEFORE)
    with claimed(path) as folder:
        assert not folder.rebooted
    assert {*STAYS, *ENDS} <= {entry.name for entry in path.iterdir()}
    assert [pod.name for pod in LocalPods(path).pods()] == ["work"]


def test_a_folder_that_names_no_boot_keeps_everything_and_names_it_from_then_on(
    tmp_path: Path, reboot: Callable[[str], None]
) -> None:
    path = tmp_path / "state"
    crash(path)
    (path / NAME).unlink()
    reboot(NOW)
    with claimed(path) as folder:
        assert not folder.rebooted
    assert {*STAYS, *ENDS} <= {entry.name for entry in path.iterdir()}
    assert (path / NAME).read_text().strip() == NOW


@pytest.mark.parametrize("text", [b"\xff" * 99, b"", b"\0"])
def test_a_note_of_the_boot_that_says_nonsense_is_another_boot_or_none(
    tmp_path: Path, text: bytes, reboot: Callable[[str], None]
) -> None:
    path = tmp_path / "state"
    crash(path)
    (path / NAME).write_bytes(text)
    reboot(NOW)
    with claimed(path) as folder:
        assert folder.rebooted is bool(text)


def test_a_person_is_told_of_the_reboot_once(tmp_path: Path, reboot: Callable[[str], None]) -> None:
    path, said = tmp_path / "state", list[str]()
    crash(path)
    reboot(NOW)
    claim_state(path, said.append).release()
    assert len([line for line in said if "started anew" in line and "history of evictions stays" in line]) == 1
    claim_state(path, said.append).release()
    assert len([line for line in said if "started anew" in line]) == 1


def test_the_kernel_names_this_boot() -> None:
    assert len(this_boot()) == 36


def test_pods_of_before_a_reboot_are_not_shown_before_the_next_start_either(
    tmp_path: Path, reboot: Callable[[str], None]
) -> None:
    path = tmp_path / "state"
    crash(path)
    assert [pod.name for pod in LocalPods(path).pods()] == ["work"]
    reboot(NOW)
    assert LocalPods(path).stored() == []


def test_on_a_full_disk_the_folder_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"

    def full(_folder: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "note_boot", full)
        with pytest.raises(Unfit, match=r"No space left on device .*make room there"):
            StateFolder.claim(path)
    assert not path.exists()
    StateFolder.claim(path).release()


def test_the_folder_of_a_clusters_agent_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    for name in ("ledger.db", "checkpoint.json", "node-pods.json"):
        (path / name).write_text("")
    with pytest.raises(Unfit, match=f"agent of a Kubernetes cluster .*SUBLET_STATE_DIR={path}-host"):
        StateFolder.claim(path)
    assert not (path / MARK).exists()


def test_a_boot_that_the_kernel_does_not_name_is_no_reboot_and_is_not_noted(
    tmp_path: Path, reboot: Callable[[str], None]
) -> None:
    path = tmp_path / "state"
    crash(path)
    reboot("")
    assert [pod.name for pod in LocalPods(path).pods()] == ["work"]
    with claimed(path) as folder:
        assert not folder.rebooted
    assert (path / NAME).read_text().strip() == BEFORE
    reboot(NOW)
    with claimed(path) as folder:
        assert folder.rebooted
