"""Limits of disks for batch work: written to its class, or to each of its pods, repaired, on record, given back."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_pod_limits_written import KINDS, PAIR, TENANT, Limited
from test_restore import Died

from services.qrm.adapters.kernel.block_io import ON_ONE_HOST, DiskLimits
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.block_io import BlockLimits, limited_groups
from services.qrm.core.isolation.rules import NodeRules
from services.qrm.core.writes.group_settings import GroupSettings
from services.qrm.former_values import FormerValues
from services.qrm.settings import BlockIoSettings
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.sysfs import disk_number
from shared.contracts.pod import Pod
from shared.core.cgroups.block_io import IO_KNOBS, io_file, io_line, io_values
from shared.core.cgroups.knobs import Knob, Version
from shared.core.cgroups.layout import OwnLayout
from shared.errors import Refused

BATCH = PAIR
FILES = {1: [io_file(knob, 1) for knob in IO_KNOBS], 2: ["io.max", "io.weight"]}
SDA, SDB = "8:0", "8:16"
LIMITS = (BlockLimits("sda", read_bps=1 << 20, write_iops=500, weight_percent=40), BlockLimits("sdb", write_bps=4096))
NONE = ("", "", "", "", "")
ON_SDA = ("1048576", "", "", "500", "40")
ON_SDB = ("", "4096", "", "", "")


def kernel_line(cgroups: Cgroups, group: str, name: str, line: str) -> bool:
    """What a kernel makes of a line: that of the disk is replaced, and gone where nothing bounds it."""
    path = cgroups.folder(group, "blkio") / name
    if not path.exists():
        return False
    disk, word = line.split()
    if disk not in (SDA, SDB):
        raise OSError(errno.ENODEV, "No such device")
    lines = dict(one.split(" ", 1) for one in path.read_text().splitlines())
    if "=" in word:
        whole = dict(pair.split("=") for pair in lines.get(disk, "rbps=max wbps=max riops=max wiops=max").split())
        key, _, value = word.partition("=")
        whole[key] = value
        lines[disk] = " ".join(f"{key}={value}" for key, value in whole.items())
        word = "0" if set(whole.values()) == {"max"} else lines[disk]
    lines[disk] = word
    kept = {one: text for one, text in lines.items() if text not in ("0", "default", "100") or one == "default"}
    path.write_text("".join(f"{one} {text}\n" for one, text in kept.items()))
    return True


class Disks:
    """A node with kubelet's groups and two disks, one of which has a partition."""

    def __init__(self, node: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node, self.cgroups, self.version = node, node.plain.cgroups, node.plain.version
        self.written: list[str] = []
        self.alive = 1000
        node.start(PAIR, TENANT)
        block = self.cgroups.host_root / "sys/devices/block"
        (self.cgroups.host_root / "sys/class/block").mkdir(parents=True)
        for name, number in (("sda", SDA), ("sda/sda1", "8:1"), ("sdb", SDB)):
            (block / name).mkdir(parents=True)
            (block / name / "dev").write_text(f"{number}\n")
            (self.cgroups.host_root / "sys/class/block" / Path(name).name).symlink_to(block / name)
        (block / "sda/sda1/partition").write_text("1\n")
        self.home = node.layout.reclaimed_group([PAIR]) or ""
        self.pod = node.layout.pod_group(PAIR)
        for group in (self.home, self.pod, node.layout.pod_group(TENANT)):
            self.folder(group).mkdir(parents=True, exist_ok=True)
            for name in FILES[self.version]:
                (self.folder(group) / name).write_text("default 100\n" if name == "io.weight" else "")
        monkeypatch.setattr(Cgroups, "write_line", self._write_line)
        self.former = FormerValues(node.store)
        self.disks = DiskLimits(self.cgroups, node.layout, self.former)
        self.now_s = 0.0

    def _write_line(self, group: str, name: str, line: str, controller: str = "") -> bool:
        assert controller == "blkio"
        if len(self.written) >= self.alive:
            raise Died
        self.written.append(f"{group} {name} {line}")
        return kernel_line(self.cgroups, group, name, line)

    def folder(self, group: str) -> Path:
        return self.node.plain.folder(group, "blkio")

    def settle(
        self, limits: Sequence[BlockLimits] = LIMITS, pods: Sequence[Pod] = (PAIR,), *, after_s: float = 1.0
    ) -> int:
        """The writes of one pass, which has no problems."""
        self.now_s += after_s
        self.written.clear()
        assert self.disks.settle(pods, limits, self.now_s, 10.0) == []
        return len(self.written)

    def another_life(self) -> None:
        self.former = FormerValues(self.node.store)
        self.former.resume()
        self.disks = DiskLimits(self.cgroups, self.node.layout, self.former)

    def of(self, group: str, disk: str) -> tuple[str, ...]:
        """What is in force of a disk, knob by knob."""
        texts = {knob: (self.folder(group) / io_file(knob, self.version)).read_text() for knob in IO_KNOBS}
        return tuple(str(io_values(knob, texts[knob], self.version).get(disk, "")) for knob in IO_KNOBS)


@pytest.fixture(params=KINDS, ids=str)
def node(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disks:
    return Disks(Limited(tmp_path, *request.param), monkeypatch)


def test_the_class_has_the_limits_of_each_disk_and_nobody_else_any(node: Disks) -> None:
    assert node.settle() == 4
    assert (node.of(node.home, SDA), node.of(node.home, SDB)) == (ON_SDA, ON_SDB)
    assert node.of(node.pod, SDA) == node.of(node.node.layout.pod_group(TENANT), SDA) == NONE
    assert node.settle() == 0
    assert node.disks.lacking == node.disks.unheeded == ()


def test_what_somebody_else_changes_is_repaired_within_the_period(node: Disks) -> None:
    node.settle()
    node.settle()
    kernel_line(node.cgroups, node.home, io_file(Knob.IO_READ_BPS, node.version),
                io_line(Knob.IO_READ_BPS, SDA, 0, node.version))  # fmt: skip
    assert node.settle() == 0, "not looked at before the period is over"
    assert node.settle(after_s=10.0) == 1
    assert node.of(node.home, SDA) == ON_SDA


def test_beside_others_each_batch_pod_has_them_for_itself(node: Disks) -> None:
    node.settle()
    node.settle(pods=(PAIR, TENANT))
    assert (node.of(node.pod, SDA), node.of(node.home, SDA)) == (ON_SDA, NONE)
    assert node.of(node.node.layout.pod_group(TENANT), SDA) == NONE


def test_what_was_there_is_given_back_and_other_disks_are_left(node: Disks) -> None:
    for knob, disk, value in ((Knob.IO_READ_BPS, SDA, 777), (Knob.IO_WRITE_IOPS, SDB, 5), (Knob.IO_WEIGHT, SDB, 7)):
        kernel_line(node.cgroups, node.home, io_file(knob, node.version), io_line(knob, disk, value, node.version))
    before = node.of(node.home, SDA), node.of(node.home, SDB)
    node.settle()
    assert node.of(node.home, SDB) == ("", "4096", "", "5", "7")
    node.another_life()
    node.settle([BlockLimits("sda", read_bps=9), BlockLimits("sdb", write_bps=9, write_iops=9)])
    node.settle(())
    assert (node.of(node.home, SDA), node.of(node.home, SDB)) == before
    assert not node.former


def test_killed_at_any_line_the_next_life_gives_back_what_was_there(node: Disks) -> None:
    kernel_line(node.cgroups, node.home, io_file(Knob.IO_READ_BPS, node.version),
                io_line(Knob.IO_READ_BPS, SDA, 777, node.version))  # fmt: skip
    for alive in range(5):
        node.alive = alive
        if alive < 4:
            with pytest.raises(Died):
                node.settle()
        else:
            node.settle()
        node.alive = 1000
        node.another_life()
        assert node.disks.give_back() == []
        assert (node.of(node.home, SDA), node.of(node.home, SDB)) == (("777", *NONE[1:]), NONE)
        assert not node.former


def test_what_cannot_be_put_on_record_is_not_written(node: Disks, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Sequence[FormerValue]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(node.node.store, "save", full)
    (problem,) = node.disks.settle([PAIR], LIMITS, 0.0, 10.0)
    assert "cannot be put on record" in problem.why
    assert (node.written, node.of(node.home, SDA)) == ([], NONE)


def test_of_a_partition_the_whole_disk_is_bounded_and_a_disk_that_is_not_there_is_named(node: Disks) -> None:
    node.settle([BlockLimits("sda1", read_bps=5), BlockLimits("sdz", read_bps=5)])
    assert node.of(node.home, SDA)[0] == "5"
    assert node.disks.unheeded == ("limits of the disk sdz: this machine has no such device",)
    assert disk_number(node.cgroups.host_root, "sda1") == SDA


def test_files_that_the_kernel_lacks_are_named_and_the_others_written(node: Disks) -> None:
    weight = io_file(Knob.IO_WEIGHT, node.version)
    (node.folder(node.home) / weight).unlink()
    node.settle()
    assert node.disks.lacking == (weight,)
    assert node.cgroups.text(node.home, io_file(Knob.IO_READ_BPS, node.version), "blkio")


def test_a_disk_that_cannot_be_bounded_is_named_with_its_file_and_the_others_are(node: Disks) -> None:
    dev = node.cgroups.host_root / "sys/devices/block/sdb/dev"
    dev.write_text("9:9\n")
    limits = [BlockLimits("sdb", read_bps=5), BlockLimits("sda", read_bps=7)]
    node.settle(limits)
    (said,) = node.disks.unheeded
    assert said.startswith(io_file(Knob.IO_READ_BPS, node.version))
    assert "no disk that can be bounded" in said
    assert node.of(node.home, SDA)[0] == "7"


def test_a_weight_without_io_cost_is_named_once_and_says_what_to_write(
    node: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, code = node.cgroups.write_line, errno.EOPNOTSUPP

    def write_line(group: str, name: str, line: str, controller: str = "") -> bool:
        real(group, name, line if "weight" not in name else f"{SDA} default", controller)
        if "weight" in name:
            raise OSError(code, "refused")
        return True

    limits = [BlockLimits("sda", read_bps=7, weight_percent=60)]
    monkeypatch.setattr(node.cgroups, "write_line", write_line)
    assert (node.settle(limits), node.settle(limits), node.settle(limits)) == (2, 1, 0)
    (said,) = node.disks.unheeded
    assert f"write '8:0 enable=1' to {'io.cost.qos' if node.version == 2 else 'blkio.cost.qos'}" in said
    assert node.settle(limits, after_s=10.0) == 1
    code = errno.EIO
    assert [one.group for one in node.disks.settle([PAIR], limits, 100.0, 10.0)] == [node.home]
    assert node.disks.unheeded == ()
    code = errno.EOPNOTSUPP
    assert node.disks.give_back() == []
    assert not node.former


def test_two_names_of_one_disk_have_the_smaller_of_each_bound_and_are_named(node: Disks) -> None:
    limits = [BlockLimits("sda", read_bps=5, write_bps=9), BlockLimits("sda1", read_bps=8, write_bps=3, read_iops=4)]
    for order in (limits, limits[::-1]):
        node.settle(order)
        assert node.of(node.home, SDA)[:3] == ("5", "3", "4")
        (said,) = node.disks.unheeded
        assert said == f"limits of {order[1].device} and {order[0].device}: both are the disk 8:0, and the smaller hold"


def test_a_pass_writes_them_and_an_uninstall_gives_them_back(node: Disks) -> None:
    node.node.apply(PAIR)
    asked = GroupSettings(2000, isolation=NodeRules(disks=LIMITS))
    assert not node.node.groups.apply(node.node.what, [PAIR], asked, 1.0).problems
    assert node.of(node.home, SDA) == ON_SDA
    after = node.node.another_life()
    assert after.resume()
    assert after.restore([PAIR]) == ()
    assert (node.of(node.home, SDA), node.of(node.home, SDB)) == (NONE, NONE)


def test_with_a_damaged_record_every_line_of_batch_groups_is_taken_away(node: Disks) -> None:
    node.node.apply(PAIR)
    asked = GroupSettings(2000, isolation=NodeRules(disks=LIMITS))
    node.node.groups.apply(node.node.what, [PAIR], asked, 1.0)
    tenant = node.node.layout.pod_group(TENANT)
    kernel_line(node.cgroups, tenant, io_file(Knob.IO_READ_BPS, node.version),
                io_line(Knob.IO_READ_BPS, SDA, 777, node.version))  # fmt: skip
    node.node.damage_record()
    for _ in range(2):  # also where a life died before there was a record again
        after = node.node.another_life()
        with pytest.raises(Refused):
            after.resume()
    assert after.restore([PAIR]) == ()
    assert (node.of(node.home, SDA), node.of(node.home, SDB)) == (NONE, NONE)
    assert node.of(tenant, SDA)[0] == "777"
    assert not after.unrecorded
    assert node.node.another_life().resume() is False


def test_on_one_host_they_have_no_effect_and_say_so(node: Disks) -> None:
    disks = DiskLimits(node.cgroups, OwnLayout(), node.former)
    assert disks.settle([PAIR], LIMITS, 0.0, 10.0) == []
    assert (disks.unheeded, node.written) == ((ON_ONE_HOST,), [])
    disks.settle([PAIR], (), 0.0, 10.0)
    assert disks.unheeded == ()


def test_who_is_limited(node: Disks) -> None:
    assert limited_groups([PAIR], node.node.layout) == [node.home]
    assert limited_groups([PAIR, TENANT], node.node.layout) == [node.pod]


VERSIONS: tuple[Version, ...] = (1, 2)


@given(st.sampled_from(IO_KNOBS), st.text(max_size=300), st.sampled_from(VERSIONS))
def test_any_text_of_a_file_is_read(knob: Knob, text: str, version: Version) -> None:
    assert all(value > 0 for value in io_values(knob, text, version).values())


@given(st.sampled_from(IO_KNOBS), st.integers(1, 1 << 62), st.sampled_from(VERSIONS))
def test_what_is_written_is_read_as_the_same(knob: Knob, value: int, version: Version) -> None:
    assert io_values(knob, io_line(knob, SDA, value, version), version) == {SDA: value}


@pytest.mark.parametrize(
    ("disks", "says"),
    [
        ([{"device": "../../etc"}], "device"),
        ([{"device": "/dev/sda"}], "device"),
        ([{"device": "sda", "read_bps": -1}], "read_bps"),
        ([{"device": "sda", "read_iops": (1 << 32) - 1}], "read_iops"),
        ([{"device": "sda", "write_iops": (1 << 32) + 100}], "write_iops"),
        ([{"device": "sda", "weight_percent": 0}], "weight_percent"),
        ([{"device": "sda"}, {"device": "sda"}], "names the disk sda twice"),
        ([{"device": f"sd{n}"} for n in range(17)], "reclaimed_cores"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(disks: list[dict[str, object]], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        BlockIoSettings.model_validate({"enabled": True, "reclaimed_cores": disks})


def test_nothing_is_limited_unless_it_is_enabled() -> None:
    disks = [{"device": "sda", "read_bps": 5}]
    assert BlockIoSettings.model_validate({"reclaimed_cores": disks}).rules() == ()
    enabled = BlockIoSettings.model_validate({"enabled": True, "reclaimed_cores": disks})
    assert enabled.rules() == (BlockLimits("sda", read_bps=5),)
