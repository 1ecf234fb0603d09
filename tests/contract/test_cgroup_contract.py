"""What every caller may rely on from the cgroup tree: on plain files of both versions, and on this host's kernel."""

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import UNLIMITED, Knob, Version
from shared.errors import Refused, Unavailable

_KERNEL = os.geteuid() == 0 and os.access("/sys/fs/cgroup/cpuset/cgroup.procs", os.W_OK)
_NEEDS_KERNEL = pytest.mark.skipif(not _KERNEL, reason="needs root and a writable v1 cpuset")


class Host:
    """A tree under test: the adapter, a top group, and how a group comes to be with its files."""

    def __init__(self, cgroups: Cgroups, top: str, add: Callable[[str], None]) -> None:
        self.cgroups, self.top, self._add = cgroups, top, add
        self.add("")

    def add(self, name: str) -> str:
        group = f"{self.top}/{name}".rstrip("/")
        self._add(group)
        return group


@pytest.fixture(
    params=["v1 files", "v2 files", pytest.param("kernel", marks=[pytest.mark.root, _NEEDS_KERNEL])],
)
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Host]:
    if request.param != "kernel":
        plain = PlainCgroups(tmp_path, cpus="0-1", mems="0", version=1 if request.param == "v1 files" else 2)
        yield Host(plain.cgroups, "top", plain.add)
        return
    cgroups, top = Cgroups(Path("/")), f"sublet-test-{uuid.uuid4().hex[:8]}"
    try:
        yield Host(cgroups, top, cgroups.make)
    finally:
        assert cgroups.remove(top)


def test_a_new_group_has_the_cpus_and_nodes_of_its_parent(host: Host) -> None:
    group = host.add("a/b")
    assert (host.cgroups.read(group, Knob.CPUS), host.cgroups.read(group, Knob.MEMS)) == ("0-1", "0")
    assert (host.cgroups.effective_cpus(group), host.cgroups.effective_mems(group)) == ("0-1", "0")


@pytest.mark.parametrize(
    ("knob", "value"),
    [(Knob.CPUS, "0"), (Knob.MEMS, "0"), (Knob.CPU_QUOTA, 1500), (Knob.CPU_QUOTA, UNLIMITED),
     (Knob.MEMORY_MAX, 64 << 20), (Knob.MEMORY_MAX, UNLIMITED)],
)  # fmt: skip
def test_what_is_written_is_read_back_in_the_same_unit(host: Host, knob: Knob, value: str | int) -> None:
    group = host.add("a")
    assert host.cgroups.write(group, knob, value)
    assert host.cgroups.read(group, knob) == value


def test_a_burst_up_to_the_quota_is_read_back_in_milli_cores(host: Host) -> None:
    group = host.add("a")
    host.cgroups.write(group, Knob.CPU_QUOTA, 1500)
    if host.cgroups.raw(group, Knob.CPU_BURST) is None:
        pytest.skip("this kernel has no CPU burst")
    assert host.cgroups.write(group, Knob.CPU_BURST, 1500)
    assert host.cgroups.read(group, Knob.CPU_BURST) == 1500


def test_a_shorter_value_leaves_nothing_of_the_longer_one(host: Host) -> None:
    group = host.add("a")
    host.cgroups.write(group, Knob.CPUS, "0-1")
    host.cgroups.write(group, Knob.CPUS, "1")
    assert (host.cgroups.raw(group, Knob.CPUS) or "").strip() == "1"


def test_an_empty_set_is_never_written(host: Host) -> None:
    group = host.add("a")
    with pytest.raises(ValueError, match=r"an empty cpuset\.cpus is never written"):
        host.cgroups.write(group, Knob.CPUS, "")
    assert host.cgroups.read(group, Knob.CPUS) == "0-1"


def test_a_group_that_is_gone_reads_as_none_and_takes_no_write(host: Host) -> None:
    gone = f"{host.top}/gone"
    assert host.cgroups.read(gone, Knob.CPUS) is None
    assert host.cgroups.effective_cpus(gone) is None
    assert host.cgroups.write(gone, Knob.CPUS, "0") is False
    assert host.cgroups.children(gone) == []
    assert list(host.cgroups.tree(gone)) == []
    assert not host.cgroups.exists(gone)


def test_a_setting_that_this_version_has_not_reads_as_none_and_is_not_created(host: Host) -> None:
    group = host.add("a")
    if host.cgroups.version == 2:
        (host.cgroups.folder(group) / "memory.high").unlink()
    assert host.cgroups.read(group, Knob.MEMORY_HIGH) is None
    assert host.cgroups.write(group, Knob.MEMORY_HIGH, 1 << 20) is False


def test_the_tree_is_walked_parents_first_in_order_of_names(host: Host) -> None:
    for name in ("b", "b/y", "a", "b/x"):
        host.add(name)
    assert host.cgroups.children(host.top) == ["a", "b"]
    below = [group.removeprefix(host.top) for group in host.cgroups.tree(host.top)]
    assert below == ["", "/a", "/b", "/b/x", "/b/y"]


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "-x", "a b", "a\x00b", "%2e%2e", "x" * 300, "ü"])
def test_a_name_that_could_leave_the_root_is_refused(host: Host, name: str) -> None:
    for use in (host.cgroups.folder, host.cgroups.make, host.cgroups.remove, host.cgroups.children):
        with pytest.raises(Refused, match="is not allowed") as refused:
            use(f"{host.top}/{name}")
        assert refused.value.reason == "bad_path"
    with pytest.raises(Refused, match="is not allowed"):
        host.cgroups.write(f"{host.top}/{name}", Knob.CPUS, "0")


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_is_changed_through_a_symbolic_link(tmp_path: Path, version: Version) -> None:
    plain = PlainCgroups(tmp_path, version=version)
    plain.add("top")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "cpuset.cpus").write_text("0-1\n")
    (plain.folder("top", "cpuset") / "link").symlink_to(outside)
    for change in (lambda: plain.cgroups.write("top/link", Knob.CPUS, "0"), lambda: plain.cgroups.make("top/link/x")):
        with pytest.raises(Refused, match="symbolic link"):
            change()
    assert (outside / "cpuset.cpus").read_text() == "0-1\n"
    assert plain.cgroups.children("top") == []


def test_names_that_are_not_ours_are_left_out_of_the_children(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path)
    plain.add("top/a")
    (plain.folder("top", "cpuset") / "-.mount").mkdir()
    assert plain.cgroups.children("top") == ["a"]


def test_a_host_without_cgroups_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="neither cgroup v2 nor"):
        Cgroups(tmp_path)


def test_version_two_enables_controllers_on_the_way_down(tmp_path: Path) -> None:
    plain = PlainCgroups(tmp_path, version=2)
    (plain.folder("", "") / "cgroup.subtree_control").write_text("cpu\n")
    plain.add("top")
    (plain.folder("top", "") / "cgroup.subtree_control").write_text("\n")
    plain.cgroups.make("top/new")
    written = (plain.folder("", "") / "cgroup.subtree_control").read_text()
    assert written == "+cpuset +memory"
    assert (plain.folder("top", "") / "cgroup.subtree_control").read_text() == "+cpuset +cpu +memory"


@pytest.mark.root
@_NEEDS_KERNEL
def test_a_process_is_attached_in_every_hierarchy_and_blocks_the_removal() -> None:
    cgroups, top = Cgroups(Path("/")), f"sublet-test-{uuid.uuid4().hex[:8]}"
    process = subprocess.Popen(["sleep", "60"])
    try:
        cgroups.make(f"{top}/a")
        cgroups.attach(f"{top}/a", process.pid)
        assert cgroups.pids(top) == [process.pid]
        assert cgroups.remove(top) is False
    finally:
        process.kill()
        process.wait()
        assert cgroups.remove(top)


def test_the_mark_of_a_group_changes_with_the_groups_in_it_and_with_itself(host: Host) -> None:
    group = host.add("a")
    marks = [host.cgroups.mark(group)]
    inode = host.cgroups.inodes(host.top)["a"]
    host.cgroups.write(group, Knob.CPUS, "0")
    assert host.cgroups.mark(group) == marks[-1], "what is written to it is nothing new in it"
    host.add("a/b")
    marks.append(host.cgroups.mark(group))
    host.add("a/c")
    marks.append(host.cgroups.mark(group))
    assert None not in marks
    assert len(set(marks)) == 3
    assert list(host.cgroups.inodes(group)) == host.cgroups.children(group) == ["b", "c"]
    assert host.cgroups.inodes(host.top)["a"] == inode
    assert host.cgroups.mark(f"{host.top}/gone") is None
