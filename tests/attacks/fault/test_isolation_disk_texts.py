"""Whatever the kernel's files say of disks: qrm goes on, writes to nothing else, and gives back what was there."""

import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_cgroups import PlainCgroups

from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.devices.disk_tuning import DiskTuning
from services.qrm.adapters.devices.queues import DiskQueues
from services.qrm.core.devices.disk_lines import NO_DISK_RULES, CostModel, CostQos, DiskClassRules, DiskRules
from services.qrm.former_values import FormerValues

pytestmark = [pytest.mark.attack]
CLASS = DiskClassRules(9, CostQos(), CostModel("user", 1, 1, 1, 1, 1, 1))
RULES = DiskRules(wbt=True, cost=True, check_wbt=False, classes=dict.fromkeys(("hdd", "ssd", "nvme", "virtio"), CLASS))
ODD = st.one_of(
    st.text(max_size=200),
    st.text(string.digits + ":=.- \n", max_size=200),
    st.sampled_from(["8:0 " * 5000, "8:0 " + "a=1 " * 5000, "9" * 100_000, "\0" * 4096, "8:0 enable=1 ctrl=\x1b[2J",
                     "../../etc 1=1", "8:0 enable=" + "9" * 5000]),
)  # fmt: skip


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ODD, ODD, ODD, ODD, ODD)
def test_odd_texts_of_disks(
    tmp_path_factory: pytest.TempPathFactory, number: str, rotates: str, wbt: str, qos: str, model: str
) -> None:
    root = tmp_path_factory.mktemp("host")
    cgroups = PlainCgroups(root, version=2).cgroups
    for name in ("sda", "nvme0n1", "vda", "sda\n", "..sda", "loop0"):
        folder = root / "sys/block" / name
        (folder / "queue").mkdir(parents=True)
        _write(folder / "dev", number if name == "sda" else "259:0\n")
        _write(folder / "queue/rotational", rotates)
        _write(folder / "queue/wbt_lat_usec", wbt if name != "vda" else "2000\n")
    for name, text in (("io.cost.qos", qos), ("io.cost.model", model)):
        _write(root / "sys/fs/cgroup" / name, text)
    before = _files(root)
    former = FormerValues(FormerValuesFile(root / "state", "boot"), cgroups.exists)
    tuning = DiskTuning(cgroups, DiskQueues(root), former)
    for number_of_pass in range(3):
        tuning.settle(RULES, float(number_of_pass), 0.0)
    another = FormerValues(FormerValuesFile(root / "state", "boot"), cgroups.exists)
    another.resume()  # what was put on record can be read
    DiskTuning(cgroups, DiskQueues(root), another).settle(NO_DISK_RULES, 9.0, 0.0)
    changed = {path for path, text in _files(root).items() if before.get(path) != text}
    assert {path.name for path in changed} <= {"io.cost.qos", "io.cost.model", "wbt_lat_usec", "former-values.json"}
    assert not {path for path in changed if "loop0" in str(path) or "..sda" in str(path)}


def test_a_link_in_place_of_the_kernels_file_is_not_followed(tmp_path: Path) -> None:
    queue = tmp_path / "sys/block/sda/queue"
    queue.mkdir(parents=True)
    (tmp_path / "elsewhere").write_text("75000\n")
    (queue.parent / "dev").write_text("8:0\n")
    (queue / "rotational").write_text("1\n")
    (queue / "wbt_lat_usec").symlink_to(tmp_path / "elsewhere")
    cgroups = PlainCgroups(tmp_path, version=2).cgroups
    problems = DiskTuning(cgroups, DiskQueues(tmp_path), FormerValues()).settle(RULES, 0.0, 0.0)
    assert (tmp_path / "elsewhere").read_text() == "75000\n"
    assert any("wbt_lat_usec" in one.why for one in problems)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="replace"))


def _files(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
