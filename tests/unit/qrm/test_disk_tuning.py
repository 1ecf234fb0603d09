"""Disks are set as the rules say: on record first, repaired, given back after a crash at any write, refusals named."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups
from qrm_world import TUTORIAL_NODE

from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.devices.disk_tuning import READ_ONLY, DiskTuning
from services.qrm.adapters.devices.queues import DiskQueues
from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.devices.disk_lines import (
    NO_DISK_RULES,
    CostModel,
    CostQos,
    Disk,
    DiskClassRules,
    DiskRules,
    read_lines,
)
from services.qrm.core.isolation.rules import NodeRules
from services.qrm.core.placement.arrangement import Node, arrange_floor
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.former_values import FormerValues
from services.qrm.sections.disks import DisksSettings
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Pod
from shared.core.cgroups.block_io import DISK_KNOBS
from shared.core.cgroups.knobs import Version
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import Layout, OwnLayout
from shared.core.cpus.cpuset import CpuSet

QOS = CostQos(ctrl="user", rpct=95.0, rlat_us=5000, wpct=90.5, wlat_us=7000, min=50.0, max=150.0)
MODEL = CostModel("user", 6, 5, 4, 3, 2, 1)
BOTH = DiskRules(wbt=True, cost=True, classes={"hdd": DiskClassRules(0, QOS, MODEL), "nvme": DiskClassRules(9)})
SDA, NVME = "8:0", "259:0"
QOS_FILE, MODEL_FILE = "io.cost.qos", "io.cost.model"
HAS_QOS = "enable=1 ctrl=user rpct=95.00 rlat=5000 wpct=90.50 wlat=7000 min=50.00 max=150.00"


class Died(BaseException):
    """The process ends at a write."""


class Disks:
    """A machine with a disk that rotates, an NVMe, a loop device, and a kernel's io.cost."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, version: Version = 2) -> None:
        self.root = folder / "host"
        self.cgroups = PlainCgroups(self.root, version=version).cgroups
        self.store = FormerValuesFile(folder / "state", "boot-1")
        for name, number, rotates, wbt in (
            ("sda", SDA, 1, 75_000),
            ("nvme0n1", NVME, 0, 2_000),
            ("loop0", "7:0", 0, 5),
        ):
            (self.root / f"sys/block/{name}/queue").mkdir(parents=True)
            (self.root / f"sys/block/{name}/dev").write_text(f"{number}\n")
            (self.root / f"sys/block/{name}/queue/rotational").write_text(f"{rotates}\n")
            self.wbt(name).write_text(f"{wbt}\n")
        if version == 2:
            for name in (QOS_FILE, MODEL_FILE):
                (self.root / "sys/fs/cgroup" / name).write_text("")
        self.alive, self.writes = 1000, 0
        self.refuses: dict[str, int] = {}
        self.real_throttle, self.now_s = DiskQueues.throttle, 0.0
        monkeypatch.setattr(Cgroups, "write_line", self._line)
        monkeypatch.setattr(DiskQueues, "throttle", self._throttle)
        self.another_life()

    def another_life(self) -> None:
        self.former = FormerValues(self.store, self.cgroups.exists)
        self.former.resume()
        self.tuning = DiskTuning(self.cgroups, DiskQueues(self.root), self.former)

    def wbt(self, name: str) -> Path:
        return self.root / f"sys/block/{name}/queue/wbt_lat_usec"

    def _write(self, name: str) -> None:
        if self.writes >= self.alive:
            raise Died
        self.writes += 1
        if name in self.refuses:
            raise OSError(self.refuses[name], "refused")

    def _throttle(self, disk: Disk, wbt_us: int) -> None:
        self._write(disk.name)
        self.wbt(disk.name).write_text(f"{wbt_us}\n")

    def _line(self, group: str, name: str, line: str, controller: str = "") -> bool:
        assert (group, controller) == ("", "")
        self._write(name)
        number, *words = line.split()
        path = self.root / "sys/fs/cgroup" / name
        lines = {one: dict(found) for one, found in read_lines(path.read_text()).items()}
        own = lines.setdefault(number, {"enable": "0", "ctrl": "auto"} if name == QOS_FILE else {"ctrl": "auto"})
        own |= dict(word.split("=") for word in words)
        if own["ctrl"] == "auto":
            lines[number] = {key: value for key, value in own.items() if key in ("enable", "ctrl")}
        text = (f"{one} {' '.join(f'{key}={value}' for key, value in found.items())}" for one, found in lines.items())
        path.write_text("\n".join(text))
        return True

    def settle(self, rules: DiskRules = BOTH, *, after_s: float = 1.0) -> int:
        """The writes of one pass, which has no problems."""
        self.now_s += after_s
        self.writes = 0
        assert self.tuning.settle(rules, self.now_s, 10.0) == []
        return self.writes

    def now(self) -> tuple[str, ...]:
        files = [(self.root / "sys/fs/cgroup" / name) for name in (QOS_FILE, MODEL_FILE)]
        sda = [" ".join(f"{k}={v}" for k, v in read_lines(path.read_text()).get(SDA, {}).items())
               for path in files if path.exists()]  # fmt: skip
        return self.wbt("sda").read_text().strip(), self.wbt("nvme0n1").read_text().strip(), *(sda or ["", ""])


@pytest.fixture
def disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disks:
    return Disks(tmp_path, monkeypatch)


def test_each_disk_is_set_as_its_class_and_devices_of_no_class_are_left(disks: Disks) -> None:
    assert disks.settle() == 4
    assert disks.now()[:3] == ("0", "9", HAS_QOS)
    assert disks.now()[3].startswith("ctrl=user model=linear rbps=6")
    assert disks.wbt("loop0").read_text() == "5\n"
    assert (disks.settle(), disks.tuning.lacking, disks.tuning.unheeded) == (0, (), ())
    assert {one.device for one in disks.store.load()} == {SDA, NVME}


def test_what_somebody_else_changes_is_repaired_within_the_period(disks: Disks) -> None:
    disks.settle()
    disks.settle()
    disks.wbt("nvme0n1").write_text("5\n")
    assert disks.settle() == 0, "not looked at before the period is over"
    assert disks.settle(after_s=10.0) == 1
    assert disks.now()[1] == "9"


def test_what_was_there_is_given_back_by_another_life_and_then_forgotten(disks: Disks) -> None:
    disks._line("", QOS_FILE, f"{SDA} enable=1 ctrl=user rpct=10.00 rlat=5")
    before = disks.now()
    disks.settle()
    disks.another_life()
    disks.settle(DiskRules(wbt=True, classes=BOTH.classes))
    assert disks.now()[:2] == ("0", "9"), "what is still wanted stays"
    assert "rpct=10.00" in disks.now()[2]
    disks.another_life()
    assert disks.tuning.give_back() == []
    assert disks.now()[:2] == before[:2]
    assert "rpct=10.00 rlat=5" in disks.now()[2]
    assert disks.now()[3] == "ctrl=auto"
    assert not disks.former


def test_killed_at_any_write_the_next_life_gives_back_what_was_there(disks: Disks) -> None:
    for alive in range(5):
        disks.alive = alive
        if alive < 4:
            with pytest.raises(Died):
                disks.settle()
        else:
            disks.settle()
        disks.alive = 1000
        disks.another_life()
        assert disks.tuning.give_back() == []
        assert disks.now()[:2] == ("75000", "2000")
        assert disks.now()[2] in ("", "enable=0 ctrl=auto")
        assert not disks.former


def test_what_cannot_be_put_on_record_is_not_written(disks: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Sequence[FormerValue]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disks.store, "save", full)
    problems = disks.tuning.settle(BOTH, 0.0, 10.0)
    assert all("cannot be put on record" in one.why for one in problems)
    assert (disks.writes, disks.now()) == (0, ("75000", "2000", "", ""))


def test_io_cost_is_not_switched_on_beside_a_throttling_that_could_not_be_ended(disks: Disks) -> None:
    disks.refuses = {"sda": errno.EROFS}
    disks.settle()
    assert disks.now()[2] == ""
    assert READ_ONLY in disks.tuning.unheeded
    only_cost = DiskRules(cost=True, classes=BOTH.classes)
    disks.settle(only_cost)
    (said,) = disks.tuning.unheeded
    assert said.startswith("io.cost of sda: write-back throttling is on there")
    disks.settle(DiskRules(cost=True, check_wbt=False, classes=BOTH.classes))
    assert disks.now()[2] == HAS_QOS


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_disk_that_the_kernel_does_not_set_is_named_and_the_others_are_set(disks: Disks, code: int) -> None:
    disks.refuses = {MODEL_FILE: code}
    disks.settle()
    (said,) = disks.tuning.unheeded
    assert said.startswith(f"{MODEL_FILE}={SDA} ctrl=user")
    assert disks.now()[:3] == ("0", "9", HAS_QOS)


def test_any_other_refusal_is_a_problem_and_tried_again(disks: Disks) -> None:
    disks.refuses = {"nvme0n1": errno.EACCES}
    problems = disks.tuning.settle(BOTH, 0.0, 10.0)
    assert [one.group for one in problems] == ["disks"]
    disks.refuses = {}
    assert disks.settle() == 1


def test_what_could_not_be_given_back_stays_on_record(disks: Disks) -> None:
    disks.settle()
    disks.refuses = {"sda": errno.EACCES}
    assert disks.tuning.give_back() != []
    assert {one.device for one in disks.store.load()} == {SDA}
    disks.refuses = {}
    assert disks.tuning.give_back() == []
    assert disks.now()[0] == "75000"


def test_files_that_the_kernel_lacks_are_named(disks: Disks) -> None:
    disks.wbt("nvme0n1").unlink()
    (disks.root / "sys/fs/cgroup" / QOS_FILE).unlink()
    disks.settle()
    assert disks.tuning.lacking == (QOS_FILE, "queue/wbt_lat_usec")
    assert disks.wbt("sda").read_text() == "0\n"
    disks.settle(NO_DISK_RULES)
    assert not disks.tuning.lacking


def test_on_v1_io_cost_is_named_and_throttling_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disks = Disks(tmp_path, monkeypatch, version=1)
    assert disks.settle() == 2
    assert disks.now()[:2] == ("0", "9")
    assert disks.tuning.unheeded == ("io.cost of disks: it needs cgroup v2",)


def test_a_disk_that_is_gone_is_forgotten(disks: Disks) -> None:
    disks.settle()
    for path in sorted((disks.root / "sys/block/nvme0n1").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (disks.root / "sys/block/nvme0n1").rmdir()
    assert disks.tuning.give_back() == []
    assert not disks.former.of_devices(DISK_KNOBS)


def test_a_value_that_cannot_be_read_is_left_for_it_could_not_be_given_back(disks: Disks) -> None:
    disks.wbt("sda").write_text("much\n")
    disks.settle(DiskRules(wbt=True))
    assert disks.wbt("sda").read_text() == "much\n"
    assert "cannot be read" in disks.tuning.unheeded[0]


@pytest.mark.parametrize("text", ["", "\n", "8", "8:", ":", "x:y", "8:0:1:x", "9" * 40 + ":0", "\0", "8:-1", "٣:٤"])
def test_a_disk_with_an_odd_number_is_left_out(disks: Disks, text: str) -> None:
    (disks.root / "sys/block/sda/dev").write_text(text)
    assert [disk.name for disk in DiskQueues(disks.root).disks()] == ["nvme0n1"]


@pytest.mark.parametrize(("layout", "left"), [(OwnLayout(), "75000"), (KubeletLayout("cgroupfs"), "5")], ids=type)
def test_who_leaves_one_host_gives_back_and_in_a_cluster_the_next_life_goes_on(
    disks: Disks, layout: Layout, left: str
) -> None:
    machine = HostMachine(disks.cgroups, lambda: TUTORIAL_NODE)
    groups = CgroupGroups(CgroupWriter(disks.cgroups, layout.top), machine, layout, former_store=disks.store)
    rules = NodeRules(tuning=DiskRules(wbt=True, classes={"hdd": DiskClassRules(5)}))
    floor = arrange_floor(Node(TUTORIAL_NODE, {}, ()), CpuSet())
    groups.apply(floor, [Pod(uid="a1", name="a", kube_qos="Burstable")], GroupSettings(0, isolation=rules), 0.0)
    assert disks.now()[0] == "5"
    assert groups.leave() == []
    assert disks.now()[0] == left
    groups.restore([])
    assert disks.now()[0] == "75000"


def test_beside_a_damaged_record_disks_wait_until_the_groups_are_on_record_again(disks: Disks) -> None:
    machine, layout = HostMachine(disks.cgroups, lambda: TUTORIAL_NODE), OwnLayout()
    groups = CgroupGroups(CgroupWriter(disks.cgroups, layout.top), machine, layout, former_store=disks.store)
    groups.unrecorded = True
    rules = NodeRules(tuning=DiskRules(wbt=True, classes={"hdd": DiskClassRules(5)}))
    groups.apply(arrange_floor(Node(TUTORIAL_NODE, {}, ()), CpuSet()), [], GroupSettings(0, isolation=rules), 0.0)
    assert disks.writes == 0


def test_in_a_cluster_nothing_is_written_before_a_pod_is_known(disks: Disks) -> None:
    machine, layout = HostMachine(disks.cgroups, lambda: TUTORIAL_NODE), KubeletLayout("cgroupfs")
    groups = CgroupGroups(CgroupWriter(disks.cgroups, layout.top), machine, layout, former_store=disks.store)
    rules = NodeRules(tuning=DiskRules(wbt=True, classes={"hdd": DiskClassRules(5)}))
    groups.apply(arrange_floor(Node(TUTORIAL_NODE, {}, ()), CpuSet()), [], GroupSettings(0, isolation=rules), 0.0)
    assert disks.writes == 0


def test_settings_say_nothing_unless_switched_on() -> None:
    assert DisksSettings().rules().of("hdd") == DiskClassRules()
    said = DisksSettings.model_validate({"io_cost": True, "ssd": {"wbt_us": 0, "qos": {}, "model": "auto"}}).rules()
    assert (said.wbt, said.cost, said.of("ssd").model) == (False, True, CostModel())
    assert said.of("ssd").qos is not None


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({"hdd": {"qos": {"min_percent": 200, "max_percent": 100}}}, "min_percent"),
        ({"hdd": {"wbt_us": -2}}, "wbt_us"),
        ({"hdd": {"model": {"read_bps": 1}}}, "model"),
        ({"tape": {}}, "tape"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(said: dict[str, object], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        DisksSettings.model_validate(said)
