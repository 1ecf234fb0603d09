"""Cache shares are kept: groups and tasks in a folder that follows the kernel's rules, all given back."""

import errno
import os
from pathlib import Path

import pytest
from fake_resctrl import INFO
from plain_cgroups import PlainCgroups
from plain_resctrl import PlainResctrl

from services.qrm.adapters.resctrl.shares import NOT_MOUNTED, READ_ONLY, CacheShares
from services.qrm.adapters.resctrl.tree import ResctrlTree
from services.qrm.core.resctrl.shares import CacheShare, ResctrlRules
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.kubelet_layout import KubeletLayout


def rules(shares: dict[QosClass, CacheShare], *steered: QosClass) -> ResctrlRules:
    return ResctrlRules(shares, frozenset(steered))


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
        assert self.shares.settle([BATCH, TENANT], rules(shares), now_s, 10.0) == []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_each_class_has_its_group_its_share_and_its_tasks(node: Node) -> None:
    node.settle(SHARES)
    batch, tenants = "sublet-reclaimed-cores", "sublet-shared-cores"
    assert node.resctrl.tree.groups() == [batch, tenants]
    assert node.resctrl.tree.schemata(batch) == {"L3": {0: 0xF, 1: 0xF}, "MB": {0: 50, 1: 50}}
    assert node.resctrl.tree.schemata(tenants) == node.resctrl.tree.schemata("")
    assert (node.resctrl.get(batch, "tasks"), node.resctrl.get(tenants, "tasks")) == (["11"], ["22"])


def test_only_new_tasks_are_moved_and_a_changed_share_is_repaired(node: Node) -> None:
    node.settle(SHARES)
    batch = "sublet-reclaimed-cores"
    node.runs(BATCH, 11, 33)
    node.resctrl.tree.write(batch, "L3:0=7ff")
    node.settle(SHARES, 5.0)
    assert node.resctrl.get(batch, "tasks") == ["11"], "not looked at before the period is over"
    node.settle(SHARES, 10.0)
    assert node.resctrl.get(batch, "tasks") == ["11", "33"]
    assert node.resctrl.tree.schemata(batch) == {"L3": {0: 0xF, 1: 0xF}, "MB": {0: 50, 1: 50}}


def test_what_was_made_here_goes_and_what_others_made_stays(node: Node) -> None:
    node.resctrl.tree.make("BE")
    node.settle(SHARES)
    after = CacheShares(node.resctrl.tree, node.plain.cgroups, node.layout)
    assert after.settle([BATCH], rules({}), 0.0, 10.0) == []
    assert node.resctrl.tree.groups() == []
    assert (node.resctrl.root / "BE").is_dir()


def test_without_resctrl_that_is_said_and_nothing_else_happens(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=2)
    control = PlainResctrl(tmp_path / "elsewhere").tree
    control.root = tmp_path / "nowhere"
    shares = CacheShares(control, plain.cgroups, KubeletLayout("cgroupfs"))
    assert shares.settle([BATCH], rules(SHARES), 0.0, 10.0) == []
    assert shares.lacking == (NOT_MOUNTED,)


@pytest.mark.parametrize(
    ("text", "info", "words"),
    [
        ("L3:0=7ff\nMB:0=4294967295\n", {}, ["mba_MBps"]),
        ("L3CODE:0=7ff\nL3DATA:0=7ff\nMB:0=100\n", {}, ["CDP"]),
        ("L3CODE:0=7ff\nL3DATA:0=7ff\n", {}, ["CDP", "no line MB"]),
        ("L3:0=7ff\n", {}, ["no line MB"]),
        ("L3:0=7ff\nMB:0=100\n", {"L3/cbm_mask": "zz"}, ["info/L3/cbm_mask says 'zz'"]),
        ("L3:0=7ff\nMB:0=100\n", {"L3/cbm_mask": "7f6"}, ["7f6 is not one block"]),
        ("L3:0=7ff\nMB:0=100\n", {"L3/min_cbm_bits": ""}, ["info/L3/min_cbm_bits says ''"]),
        ("L3:0=7ff\nMB:0=100\n", {"MB/bandwidth_gran": "-1"}, ["info/MB/bandwidth_gran says '-1'"]),
        ("L3:0=7ff\nMB:0=100\n", {"L3/num_closids": "many"}, ["how many groups"]),
        ("L3:0=7ff\nMB:0=100\n", {"L3/min_cbm_bits": "5"}, ["of 11 ways are fewer than the least, 5"]),
        ("L3:0=7ff\nMB:0=100\n", {}, []),
    ],
)
def test_what_this_machine_cannot_follow_is_named(
    tmp_path: Path, text: str, info: dict[str, str], words: list[str]
) -> None:
    control, plain = PlainResctrl(tmp_path / "r", text, INFO | info), PlainCgroups(tmp_path, version=2)
    shares = CacheShares(control.tree, plain.cgroups, KubeletLayout("cgroupfs"))
    for now_s in (0.0, 1.0):
        assert shares.settle([], rules(SHARES), now_s, 10.0) == []
        assert [word in said for word, said in zip(words, shares.unheeded, strict=True)] == [True] * len(words)
    assert shares.settle([], rules({}), 2.0, 10.0) == []
    assert shares.unheeded == ()


@pytest.mark.parametrize(
    ("number", "words"), [(errno.EINVAL, "what the hardware takes"), (errno.ENOSPC, "CLOSID"), (errno.EACCES, "denied")]
)
def test_a_refusal_is_said_with_the_reason_of_its_kind(tmp_path: Path, number: int, words: str) -> None:
    (problem, *_) = refusing(tmp_path, number).settle([BATCH], rules(SHARES), 0.0, 10.0)
    assert words in problem.why
    assert ("what the hardware takes" in problem.why) is (number == errno.EINVAL)


def test_a_read_only_tree_is_no_problem_of_a_pass_and_is_named(tmp_path: Path) -> None:
    shares = refusing(tmp_path, errno.EROFS)
    for now_s in (0.0, 1.0, 20.0):
        assert shares.settle([BATCH], rules(SHARES), now_s, 10.0) == []
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
    problems = node.shares.settle([BATCH, TENANT], rules(SHARES), 20.0, 10.0)
    assert [problem.group for problem in problems] == ["resctrl/sublet-reclaimed-cores"]


def test_a_share_that_this_machine_cannot_give_leaves_the_whole(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.settle(SHARES)
    node.settle({"reclaimed_cores": CacheShare(0, 1, 45)}, 1.0)
    assert node.resctrl.tree.schemata("sublet-reclaimed-cores") == {"L3": {0: 0x7FF, 1: 0x7FF}, "MB": {0: 50, 1: 50}}


def test_groups_beyond_what_the_hardware_has_are_refused_by_name(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (node.resctrl.root / "info/MB/num_closids").write_text("2\n")
    (problem,) = node.shares.settle([BATCH, TENANT], rules(SHARES), 0.0, 10.0)
    assert problem.group == "resctrl/sublet-reclaimed-cores"
    assert "2 of the 2" in problem.why
    assert node.resctrl.tree.groups() == ["sublet-shared-cores"]


def test_only_what_differs_is_written(node: Node) -> None:
    node.settle(SHARES)
    written = node.resctrl.kernel.written
    assert written == [("sublet-reclaimed-cores", "L3:0=f;1=f"), ("sublet-reclaimed-cores", "MB:0=50;1=50")]
    node.settle(SHARES, 10.0)
    assert len(written) == 2, "found in force"
    node.settle({**SHARES, "reclaimed_cores": CacheShare(0, 50, 45)}, 11.0)
    assert written[2:] == [("sublet-reclaimed-cores", "L3:0=3f;1=3f")]


def test_bandwidth_is_written_in_eighths_on_amd(tmp_path: Path) -> None:
    node = Node(tmp_path)
    info = INFO | {"MB/min_bandwidth": "0", "MB/bandwidth_gran": "1"}
    amd = PlainResctrl(tmp_path / "amd", "L3:0=7ff\nMB:0=2048\n", info, "processor : 0\nvendor_id\t: AuthenticAMD\n")
    shares = CacheShares(amd.tree, node.plain.cgroups, node.layout)
    assert shares.settle([BATCH], rules(SHARES), 0.0, 10.0) == []
    assert amd.tree.schemata("sublet-reclaimed-cores") == {"L3": {0: 0xF}, "MB": {0: 72}}
    assert amd.tree.schemata("sublet-shared-cores") == {"L3": {0: 0x7FF}, "MB": {0: 2048}}


def test_tasks_of_a_container_that_starts_later_are_moved_at_the_next_pass_at_any_depth(node: Node) -> None:
    node.settle(SHARES)
    deep = f"{node.layout.pod_group(BATCH)}/container/kata/worker"
    node.plain.add(deep)
    node.settle(SHARES, 1.0)
    assert node.resctrl.get("sublet-reclaimed-cores", "tasks") == ["11"], "its cgroup is there before its tasks are"
    (node.plain.folder(deep, "") / "cgroup.threads").write_text("44\n45\n")
    node.settle(SHARES, 2.0)
    assert node.resctrl.get("sublet-reclaimed-cores", "tasks") == ["11", "44", "45"]


def test_what_the_kernel_says_of_a_line_stands_in_the_problem(node: Node) -> None:
    node.resctrl.kernel.info["MB/min_bandwidth"] = "60"
    (problem,) = node.shares.settle([BATCH], rules(SHARES), 0.0, 10.0)
    assert "MB value 50 out of range" in problem.why


def test_the_bandwidth_of_a_steered_class_is_left_to_who_steers_it(node: Node) -> None:
    steered = rules(SHARES, "reclaimed_cores")
    assert node.shares.settle([BATCH, TENANT], steered, 0.0, 10.0) == []
    assert [line for _, line in node.resctrl.kernel.written] == ["L3:0=f;1=f"]
    (node.resctrl.root / "info/L3_MON/mon_features").write_text("llc_occupancy\n")
    assert node.shares.settle([BATCH, TENANT], steered, 10.0, 10.0) == []
    assert node.resctrl.kernel.written[1:] == [("sublet-reclaimed-cores", "MB:0=50;1=50")], "nothing can be measured"
