"""Cache shares: masks and bandwidths by the formula, groups and tasks in a tree of resctrl's shape, all given back."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_cgroups import PlainCgroups
from plain_resctrl import PlainResctrl

from services.qrm.adapters.kernel.cache_shares import NOT_MOUNTED, READ_ONLY, CacheShares
from services.qrm.adapters.resctrl.tree import ResctrlTree
from services.qrm.core.isolation.cache import (
    CacheBounds,
    CacheShare,
    bandwidth,
    cache_mask,
    read_schemata,
    schemata_lines,
)
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.kubelet_layout import KubeletLayout


@pytest.mark.parametrize(
    ("whole", "start", "end", "mask"),
    [
        (0x7FF, 0, 30, 0xF),
        (0x3FF, 10, 80, 0xFE),
        (0x7FF, 10, 50, 0x3C),
        (0x7FF, 0, 100, 0x7FF),
        (0xF, 10, 20, 0x1),
        (0xF, 99, 100, 0x8),
        (0x7F6, 0, 30, 0x7F6),
    ],
)
def test_masks(whole: int, start: int, end: int, mask: int) -> None:
    assert cache_mask(CacheShare(start, end), whole, 1) == mask


@pytest.mark.parametrize(
    ("percent", "most", "wanted"),
    [
        (100, 100, 100),
        (30, 100, 30),
        (31, 100, 40),
        (1, 100, 10),
        (100, 2048, 2048),
        (50, 2048, 80),
        (1, 2048, 1),
        (50, 4294967295, 4294967295),
    ],
)
def test_bandwidths(percent: int, most: int, wanted: int) -> None:
    assert bandwidth(CacheShare(bandwidth_percent=percent), most, CacheBounds()) == wanted


@given(st.integers(1, 32), st.integers(0, 99), st.integers(1, 100), st.integers(1, 4))
def test_law_a_mask_is_one_block_of_enough_ways_within_the_whole(ways: int, start: int, width: int, least: int) -> None:
    whole = (1 << ways) - 1
    mask = cache_mask(CacheShare(start, min(100, start + width)), whole, least)
    assert mask & ~whole == 0
    assert mask.bit_count() >= min(least, ways)
    low = mask & -mask
    assert (mask // low + 1).bit_count() == 1, "one block without a gap"


@given(st.text())
def test_no_text_of_the_kernel_throws(text: str) -> None:
    for line in (text, f"L3:{text}", f"MB:0={text}", f"L3:{text}=f"):
        found = read_schemata(line)
        assert schemata_lines(found, found) == []


def test_what_is_no_number_is_passed_over() -> None:
    text = "L3:0=7ff;x=1;1=zz;2=fff\nL2:0=f\nMB:0=100;1=" + "9" * 5000
    assert read_schemata(text) == {"L3": {0: 0x7FF, 2: 0xFFF}, "MB": {0: 100}}


SHARES: dict[QosClass, CacheShare] = {"shared_cores": CacheShare(), "reclaimed_cores": CacheShare(0, 30, 45)}
BATCH = Pod(uid="b2", name="b", qos="reclaimed_cores", kube_qos="BestEffort")
TENANT = Pod(uid="c3", name="c", kube_qos="Burstable")


class Node:
    """Two pods with a task each, and resctrl, as plain files."""

    def __init__(self, folder: Path) -> None:
        self.layout, self.plain = KubeletLayout("cgroupfs"), PlainCgroups(folder, version=2)
        for pod, task in ((BATCH, 11), (TENANT, 22)):
            self.plain.add(self.layout.pod_group(pod))
            self.runs(pod, task)
        self.resctrl = PlainResctrl(folder)
        self.shares = CacheShares(self.resctrl.tree, self.plain.cgroups, self.layout)

    def runs(self, pod: Pod, *tasks: int) -> None:
        text = "\n".join(map(str, tasks))
        (self.plain.folder(self.layout.pod_group(pod), "") / "cgroup.threads").write_text(text)

    def settle(self, shares: dict[QosClass, CacheShare], now_s: float = 0.0) -> None:
        assert self.shares.settle([BATCH, TENANT], shares, now_s, 10.0) == []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_each_class_has_its_group_its_share_and_its_tasks(node: Node) -> None:
    node.settle(SHARES)
    batch, tenants = "sublet-reclaimed-cores", "sublet-shared-cores"
    assert node.resctrl.tree.groups() == [batch, tenants]
    assert node.resctrl.tree.schemata(batch) == {"L3": {0: 0xF, 1: 0xF}, "MB": {0: 50, 1: 50}}
    assert node.resctrl.tree.schemata(tenants) == node.resctrl.tree.whole()
    assert (node.resctrl.get(batch, "tasks"), node.resctrl.get(tenants, "tasks")) == (["11"], ["22"])


def test_only_new_tasks_are_moved_and_a_changed_share_is_repaired(node: Node) -> None:
    node.settle(SHARES)
    batch = "sublet-reclaimed-cores"
    node.runs(BATCH, 11, 33)
    (node.resctrl.root / batch / "schemata").write_text("L3:0=7ff;1=7ff\nMB:0=50;1=50\n")
    node.settle(SHARES, 5.0)
    assert node.resctrl.get(batch, "tasks") == ["11"], "not looked at before the period is over"
    node.settle(SHARES, 10.0)
    assert node.resctrl.get(batch, "tasks") == ["11", "33"]
    assert node.resctrl.tree.schemata(batch) == {"L3": {0: 0xF, 1: 0xF}, "MB": {0: 50, 1: 50}}


def test_what_was_made_here_goes_and_what_others_made_stays(node: Node) -> None:
    (node.resctrl.root / "BE").mkdir()
    node.settle(SHARES)
    after = CacheShares(node.resctrl.tree, node.plain.cgroups, node.layout)
    assert after.settle([BATCH], {}, 0.0, 10.0) == []
    assert node.resctrl.tree.groups() == []
    assert (node.resctrl.root / "BE").is_dir()


def test_without_resctrl_that_is_said_and_nothing_else_happens(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=2)
    control = PlainResctrl(tmp_path / "elsewhere").tree
    control.root = tmp_path / "nowhere"
    shares = CacheShares(control, plain.cgroups, KubeletLayout("cgroupfs"))
    assert shares.settle([BATCH], SHARES, 0.0, 10.0) == []
    assert shares.lacking == (NOT_MOUNTED,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L3:0=7ff\nMB:0=4294967295\n", ["mba_MBps"]),
        ("L3CODE:0=7ff\nL3DATA:0=7ff\nMB:0=100\n", ["CDP"]),
        ("L3CODE:0=7ff\nL3DATA:0=7ff\n", ["CDP", "no line MB"]),
        ("L3:0=7ff\nMB:0=100\n", []),
    ],
)
def test_what_this_machine_cannot_follow_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    control, plain = PlainResctrl(tmp_path / "r", text), PlainCgroups(tmp_path, version=2)
    shares = CacheShares(control.tree, plain.cgroups, KubeletLayout("cgroupfs"))
    for now_s in (0.0, 1.0):
        assert shares.settle([], SHARES, now_s, 10.0) == []
        assert [word in said for word, said in zip(words, shares.unheeded, strict=True)] == [True] * len(words)
    assert shares.settle([], {}, 2.0, 10.0) == []
    assert shares.unheeded == ()


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EINVAL, "what the hardware takes"), (errno.ENOSPC, "CLOSID"), (errno.EACCES, "denied")]
)
def test_a_refusal_is_said_with_the_reason_of_its_kind(tmp_path: Path, number: int, words: str) -> None:
    (problem, *_) = refusing(tmp_path, number).settle([BATCH], SHARES, 0.0, 10.0)
    assert words in problem.why
    assert ("what the hardware takes" in problem.why) is (number == errno.EINVAL)


def test_a_read_only_tree_is_no_problem_of_a_pass_and_is_named(tmp_path: Path) -> None:
    shares = refusing(tmp_path, errno.EROFS)
    for now_s in (0.0, 1.0, 20.0):
        assert shares.settle([BATCH], SHARES, now_s, 10.0) == []
        assert shares.unheeded == (READ_ONLY,)


def refusing(folder: Path, number: int) -> CacheShares:
    def mkdir(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    PlainResctrl(folder)
    plain = PlainCgroups(folder, version=2)
    return CacheShares(ResctrlTree(folder, mkdir=mkdir), plain.cgroups, KubeletLayout("cgroupfs"))


def test_a_share_that_the_hardware_refuses_is_a_problem_of_that_group(node: Node) -> None:
    node.settle(SHARES)
    (node.resctrl.root / "sublet-reclaimed-cores" / "tasks").unlink()
    (node.resctrl.root / "sublet-reclaimed-cores" / "tasks").mkdir()
    problems = node.shares.settle([BATCH, TENANT], SHARES, 20.0, 10.0)
    assert [problem.group for problem in problems] == ["resctrl/sublet-reclaimed-cores"]
