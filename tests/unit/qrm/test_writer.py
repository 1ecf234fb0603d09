"""The writer on plain files: refusals, groups that vanish, counters, both versions."""

import errno
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups

from services.qrm.adapters.kernel.writer import MAX_ROUNDS, CgroupWriter
from services.qrm.core.writes.classes import wanted_groups
from services.qrm.core.writes.plan import Sets
from shared.core.cgroups.knobs import Knob, Version, Write
from shared.core.cgroups.layout import OwnLayout
from shared.core.cpus.cpuset import CpuSet

POOLS = {"reclaim": CpuSet.parse("0-9"), "share": CpuSet.parse("10-47")}
WANTED = wanted_groups(POOLS, Sets(CpuSet.parse("0-47"), CpuSet.parse("0-1")), OwnLayout())
POD = "sublet/reclaimed_cores/poda1"


class Stubborn(PlainCgroups):
    """A tree whose kernel answers some groups with an error."""

    def __init__(self, host_root: Path, version: Version = 1, **errors: int) -> None:
        super().__init__(host_root, version=version)
        self.errors = {name.replace("__", "/"): number for name, number in errors.items()}
        self.tries: list[str] = []
        self._real_write = self.cgroups.write
        self.cgroups.write = self._write  # type: ignore[method-assign]

    def _write(self, group: str, knob: Knob, value: str | int) -> bool:
        self.tries.append(group)
        if group in self.errors:
            raise OSError(self.errors[group], errno.errorcode[self.errors[group]])
        return self._real_write(group, knob, value)


@pytest.mark.parametrize("version", [1, 2])
def test_a_pass_brings_every_level_to_its_pool(tmp_path: Path, version: Version) -> None:
    plain = PlainCgroups(tmp_path, version=version)
    plain.add_classes()
    plain.add(POD)
    plain.add(f"{POD}/main")
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED)
    assert outcome.problems == ()
    assert [plain.get(group) for group in ("sublet/reclaimed_cores", POD, f"{POD}/main")] == ["0-9"] * 3
    assert plain.get("sublet/shared_cores") == plain.get("sublet/dedicated_cores") == "10-47"


def test_on_version_two_an_empty_set_is_its_parent_s(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=2)
    plain.add_classes()
    plain.add(POD)
    plain.set(POD, "cpuset.cpus", "")
    tree = CgroupWriter(plain.cgroups, "sublet").read_tree(WANTED.keys())
    assert str(tree[POD].cpus) == "0-47"


def test_one_refusing_group_is_named_and_does_not_hold_up_the_others(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path, sublet__reclaimed_cores__poda1=errno.EINVAL)
    plain.add_classes()
    plain.add(POD)
    plain.add("sublet/reclaimed_cores/podb2")
    counted: list[tuple[str, str]] = []
    outcome = CgroupWriter(plain.cgroups, "sublet", lambda *what: counted.append(what)).apply(WANTED)
    assert [(p.group, p.why) for p in outcome.problems] == [(POD, "cpuset.cpus=0-9: EINVAL")]
    assert plain.get("sublet/reclaimed_cores/podb2") == "0-9"
    assert plain.get("sublet/shared_cores") == "10-47"
    assert plain.get("sublet/reclaimed_cores") == "0-47", "a parent never leaves its child behind"
    assert counted.count(("cpuset.cpus", "refused")) == 1


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EACCES])
def test_a_group_that_stays_busy_is_tried_three_times_and_then_left_for_the_next_pass(
    tmp_path: Path, code: int
) -> None:
    plain = Stubborn(tmp_path, sublet__reclaimed_cores=code)
    plain.add_classes()
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED)
    assert plain.tries[:3] == ["sublet/reclaimed_cores"] * 3, "what comes after it in the plan rests on it"
    assert plain.tries.count("sublet/reclaimed_cores") == 3
    assert [p.group for p in outcome.problems] == ["sublet/reclaimed_cores"]
    assert plain.get("sublet/shared_cores") == "10-47"


def test_a_group_that_was_busy_for_a_moment_is_no_problem(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path, sublet__reclaimed_cores=errno.EBUSY)
    plain.add_classes()
    counted: list[tuple[str, str]] = []

    def count(file: str, result: str) -> None:
        counted.append((file, result))
        if counted.count((file, "busy")) == 2:
            plain.errors.clear()

    assert CgroupWriter(plain.cgroups, "sublet", count).apply(WANTED).problems == ()
    assert ("cpuset.cpus", "refused") not in counted
    assert plain.get("sublet/reclaimed_cores") == "0-9"


@pytest.mark.parametrize("code", [errno.EROFS, errno.EPERM])
def test_a_read_only_tree_is_given_up_after_one_try(tmp_path: Path, code: int) -> None:
    plain = Stubborn(tmp_path, sublet__reclaimed_cores=code, sublet__shared_cores=code)
    plain.add_classes()
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED)
    assert len(plain.tries) == 1
    assert [p.why for p in outcome.problems] == [f"cpuset.cpus=0-9: {errno.errorcode[code]}"]


def test_a_tree_that_is_changed_back_as_fast_as_it_is_written_is_given_up_for_this_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Stubborn(tmp_path)
    plain.add_classes()
    monkeypatch.setattr(plain.cgroups, "write", lambda _group, _knob, _value: True)
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED)
    assert [(p.group, p.why) for p in outcome.problems if "moves" in p.why] == [
        ("sublet", f"the tree still moves after {MAX_ROUNDS} plans")
    ]


def test_a_pinned_group_is_not_written(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path)
    plain.add_classes()
    plain.add(POD)
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED, {POD})
    assert POD not in plain.tries
    assert outcome.problems == ()


def test_a_set_that_the_kernel_does_not_grant_is_a_problem(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=2)
    plain.add_classes()
    granted = plain.folder("sublet/reclaimed_cores", "") / "cpuset.cpus.effective"
    granted.unlink()
    granted.write_text("0-3\n")
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED)
    assert [p.why for p in outcome.problems] == ["the kernel grants CPUs 0-3 instead of 0-9"]


def test_what_the_kernel_grants_a_pinned_group_is_no_concern_of_ours(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=2)
    plain.add_classes()
    plain.add(POD)
    granted = plain.folder(POD, "") / "cpuset.cpus.effective"
    granted.unlink()
    granted.write_text("0-3\n")
    assert CgroupWriter(plain.cgroups, "sublet").apply(WANTED, {POD}).problems == ()


def test_a_missing_class_is_a_problem_and_the_others_are_written(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path)
    plain.add("sublet")
    plain.add("sublet/shared_cores")
    outcome = CgroupWriter(plain.cgroups, "sublet").apply(WANTED)
    assert "sublet/reclaimed_cores" in [p.group for p in outcome.problems]
    assert plain.get("sublet/shared_cores") == "10-47"


def test_without_its_top_group_nothing_is_read_and_all_is_missing(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path)
    writer = CgroupWriter(plain.cgroups, "sublet")
    assert writer.read_tree(WANTED.keys()) == {}
    assert {p.group for p in writer.apply(WANTED).problems} == WANTED.keys()


def test_a_setting_is_written_only_where_it_differs(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path)
    plain.add_classes()
    writer = CgroupWriter(plain.cgroups, "sublet")
    wish = Write("sublet", Knob.CPU_SHARES, 2048)
    assert writer.settle([wish, wish]) == []
    assert plain.tries == ["sublet"]


def test_a_setting_that_is_refused_is_named_and_does_not_hold_up_the_others(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path, sublet__reclaimed_cores=errno.EINVAL)
    plain.add_classes()
    writes = [Write(f"sublet/{qos}_cores", Knob.CPU_SHARES, 2048) for qos in ("reclaimed", "shared")]
    problems = CgroupWriter(plain.cgroups, "sublet").settle(writes)
    assert [(p.group, p.why) for p in problems] == [("sublet/reclaimed_cores", "cpu.shares=2048: EINVAL")]
    assert plain.get("sublet/shared_cores", "cpu.shares", "cpu") == "2048"


def test_a_setting_that_this_kernel_does_not_have_is_not_written(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path)
    plain.add_classes()
    (plain.folder("sublet", "cpu") / "cpu.idle").unlink()
    assert CgroupWriter(plain.cgroups, "sublet").settle([Write("sublet", Knob.CPU_IDLE, 1)]) == []
    assert plain.tries == []


def test_a_busy_memory_limit_is_no_problem_but_tried_again_later(tmp_path: Path) -> None:
    plain = Stubborn(tmp_path, sublet__reclaimed_cores=errno.EBUSY)
    plain.add_classes()
    counted: list[tuple[str, str]] = []
    writer = CgroupWriter(plain.cgroups, "sublet", lambda *what: counted.append(what))
    assert writer.settle([Write("sublet/reclaimed_cores", Knob.MEMORY_MAX, 1 << 30)]) == []
    assert counted == [("memory.max", "busy")]
