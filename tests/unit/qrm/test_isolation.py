"""Values of isolation in the kernel's files: written, repaired, given back, and what is lacking is named once."""

import shutil
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups

from services.qrm.adapters.kernel.isolation import GroupIsolation
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.rules import NEUTRAL, Values
from services.qrm.former_values import FormerValues
from shared.core.cgroups.block_io import DISK_KNOBS, IO_KNOBS
from shared.core.cgroups.knobs import UNLIMITED, Knob, Version

POD, CONTAINER = "kubepods/podab", "kubepods/podab/c1"
BURST = {1: "cpu.cfs_burst_us", 2: "cpu.max.burst"}
BURSTS: Values = {(POD, Knob.CPU_BURST): 500, (CONTAINER, Knob.CPU_BURST): 500}


class Node:
    """One pod's groups as plain files, and the writes that are made to them."""

    def __init__(self, folder: Path, version: Version) -> None:
        self.plain = PlainCgroups(folder, version=version)
        self.written: list[tuple[str, str]] = []
        self.former = FormerValues()
        self.isolation = GroupIsolation(CgroupWriter(self.plain.cgroups, "kubepods", self._count), self.former)
        self.now_s = 0.0
        for group in ("kubepods", POD, CONTAINER):
            self.plain.add(group)
            self.plain.cgroups.write(group, Knob.CPU_QUOTA, 1000)

    def _count(self, file: str, result: str) -> None:
        self.written.append((file, result))

    def settle(self, wanted: Values, *, after_s: float = 1.0) -> int:
        """The writes of one pass, which has no problems."""
        self.now_s += after_s
        self.written.clear()
        assert self.isolation.settle(wanted, self.now_s, 10.0) == []
        return len(self.written)

    def burst_us(self, group: str) -> str:
        return self.plain.get(group, BURST[self.plain.version], "cpu")

    def without(self, knob: Knob) -> None:
        """As on a kernel that does not know it."""
        for group in ("kubepods", POD, CONTAINER):
            path = self.plain.cgroups.file(group, knob)
            assert path is not None
            path.unlink()


@pytest.fixture(params=(1, 2), ids=("v1", "v2"))
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return Node(tmp_path, request.param)


@pytest.fixture
def v2(tmp_path: Path) -> Node:
    return Node(tmp_path, 2)


def test_a_value_is_written_once_and_repaired_within_the_period(node: Node) -> None:
    assert node.settle(BURSTS) == 2
    assert node.settle(BURSTS) == 0
    node.plain.set(POD, BURST[node.plain.version], "0", "cpu")
    assert node.settle(BURSTS) == 0, "not looked at before the period is over"
    assert node.settle(BURSTS, after_s=10.0) == 1
    assert node.burst_us(POD) == "50000"


def test_what_is_not_wanted_any_more_is_given_back(node: Node) -> None:
    node.settle(BURSTS)
    assert node.settle({(POD, Knob.CPU_BURST): 500}) == 1
    assert (node.burst_us(POD), node.burst_us(CONTAINER)) == ("50000", "0")
    assert node.settle({}) == 1
    assert node.settle({}, after_s=20.0) == 0
    assert node.burst_us(POD) == "0"


def test_what_somebody_else_gave_is_left_alone(node: Node) -> None:
    node.plain.set(POD, BURST[node.plain.version], "7000", "cpu")
    assert node.settle({}) == 0
    assert node.burst_us(POD) == "7000"


def test_a_container_that_comes_late_gets_its_value_when_it_comes(node: Node) -> None:
    late = "kubepods/podab/c2"
    wanted = {**BURSTS, (late, Knob.CPU_BURST): 300}
    node.settle(wanted)
    node.settle(wanted)
    node.plain.add(late)
    node.plain.cgroups.write(late, Knob.CPU_QUOTA, 1000)
    assert node.settle(wanted) == 1
    assert node.burst_us(late) == "30000"


def test_a_burst_never_exceeds_the_quota_that_is_there(node: Node) -> None:
    node.plain.cgroups.write(CONTAINER, Knob.CPU_QUOTA, 200)
    node.plain.cgroups.write(POD, Knob.CPU_QUOTA, UNLIMITED)
    node.settle(BURSTS)
    assert (node.burst_us(POD), node.burst_us(CONTAINER)) == ("0", "20000")


def test_a_burst_of_a_short_period_stays_within_its_quota(v2: Node) -> None:
    v2.plain.set(CONTAINER, "cpu.max", "20000 10000", "cpu")
    v2.settle({(CONTAINER, Knob.CPU_BURST): 2000})
    assert v2.burst_us(CONTAINER) == "20000"


def test_a_group_that_ends_while_it_is_read_says_nothing_about_the_kernel(v2: Node) -> None:
    read = v2.plain.cgroups.read

    def ends(group: str, knob: Knob) -> str | int | None:
        if group == CONTAINER:
            shutil.rmtree(v2.plain.folder(CONTAINER, ""), ignore_errors=True)
        return read(group, knob)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(v2.plain.cgroups, "read", ends)
        assert v2.settle(BURSTS) == 1
    assert v2.isolation.lacking == ()


def test_a_file_that_the_kernel_lacks_is_named_and_nothing_is_written(node: Node) -> None:
    node.without(Knob.CPU_BURST)
    assert node.settle(BURSTS) == 0
    assert node.isolation.lacking == (BURST[node.plain.version],)
    assert node.settle({}) == 0
    assert not node.isolation.lacking


PROTECTED: Values = {
    ("kubepods", Knob.MEMORY_MIN): 8 << 20, (POD, Knob.MEMORY_MIN): 8 << 20, (CONTAINER, Knob.MEMORY_MIN): 4 << 20,
    (CONTAINER, Knob.MEMORY_HIGH): 16 << 20,
}  # fmt: skip
GROUPS = ("kubepods", POD, CONTAINER)


def test_memory_is_protected_and_throttled_and_both_end(v2: Node) -> None:
    assert v2.settle(PROTECTED) == 4
    assert v2.settle(PROTECTED) == 0
    assert [v2.plain.get(group, "memory.min") for group in GROUPS] == ["8388608", "8388608", "4194304"]
    assert v2.plain.get(CONTAINER, "memory.high") == "16777216"
    assert {knob for _, knob in v2.former.of(NEUTRAL)} == {Knob.MEMORY_MIN, Knob.MEMORY_HIGH}
    assert v2.isolation.give_back() == []
    assert {v2.plain.get(group, "memory.min") for group in GROUPS} == {"0"}
    assert v2.plain.get(CONTAINER, "memory.high") == "max"
    assert not v2.former


def test_memory_high_goes_down_in_steps_while_more_is_used(v2: Node) -> None:
    v2.plain.set(CONTAINER, "memory.current", str(1 << 30), "memory")
    v2.settle(PROTECTED)
    assert v2.plain.get(CONTAINER, "memory.high") == str((1 << 30) - (256 << 20))
    v2.plain.set(CONTAINER, "memory.current", "0", "memory")
    v2.settle(PROTECTED)
    assert v2.plain.get(CONTAINER, "memory.high") == "16777216"


def test_memory_high_is_left_alone_while_the_last_step_has_not_worked(v2: Node) -> None:
    v2.plain.set(CONTAINER, "memory.current", str(1 << 30), "memory")
    v2.settle(PROTECTED)
    for passed, usage in enumerate(((1 << 30) - 4096, (1 << 30) + 8192, (1 << 30) - 8192)):
        v2.plain.set(CONTAINER, "memory.current", str(usage), "memory")
        assert v2.settle(PROTECTED, after_s=20.0) == 0, passed
    assert v2.plain.get(CONTAINER, "memory.high") == str((1 << 30) - (256 << 20))


def test_every_file_that_a_kernel_lacks_is_named(tmp_path: Path) -> None:
    node = Node(tmp_path, 1)
    wanted = {**PROTECTED, (POD, Knob.WMARK_RATIO): 95, (POD, Knob.GROUP_IDENTITY): 2}
    assert node.settle(wanted) == 0
    assert node.isolation.lacking == ("cpu.bvt_warp_ns", "memory.high", "memory.min", "memory.wmark_ratio")
    assert node.settle(wanted) == 0
    assert not node.former


def test_what_a_life_before_gave_is_given_back_and_other_groups_are_left(v2: Node) -> None:
    v2.settle({**PROTECTED, **BURSTS})
    v2.former.forget((group, knob) for group, knob in {**PROTECTED, **BURSTS} if knob is not Knob.MEMORY_MIN)
    after = GroupIsolation(CgroupWriter(v2.plain.cgroups, "kubepods"), v2.former)
    assert after.settle({(POD, Knob.MEMORY_MIN): 8 << 20}, 0.0, 10.0) == []
    assert [v2.plain.get(group, "memory.min") for group in GROUPS] == ["0", "8388608", "0"]
    assert v2.plain.get(CONTAINER, "memory.high") == "16777216"
    assert v2.burst_us(POD) == "50000"


def test_every_knob_of_isolation_has_a_value_to_go_back_to() -> None:
    others = {Knob.CPUS, Knob.MEMS, Knob.MEMORY_MIGRATE, Knob.CPU_IDLE, Knob.CPU_SHARES, Knob.CPU_QUOTA,
              Knob.MEMORY_MAX, *IO_KNOBS, *DISK_KNOBS}  # fmt: skip
    assert set(Knob) - others == NEUTRAL.keys()
