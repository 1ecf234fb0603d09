"""The node's root file system and its network cards: what is told of them, and what is left out."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixture_types import NewPod
from kernel_trees import GIB, KernelTree, put

from services.metrics.adapters import host as host_files
from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from services.metrics.sources import nic
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import read_record, root_file_system
from shared.contracts.sample import NodeReading
from shared.core.file_system import FileSystem

DISK = FileSystem(capacity_bytes=100 * GIB, used_bytes=60 * GIB, available_bytes=35 * GIB, inodes=1000, inodes_free=400)


ReadFileSystem = Callable[[str], FileSystem | None]


@pytest.fixture
def tree(tmp_path: Path) -> KernelTree:
    made = KernelTree(tmp_path / "host", 2)
    made.machine()
    made.node()
    return made


def node_of(tree: KernelTree, file_system: ReadFileSystem = root_file_system, at_s: float = 0.0) -> NodeReading:
    """The node's reading as a sample tells it."""
    host = HostReader(tree.root, Cgroups(tree.root), file_system)
    collector = Collector(host, known_sources(), LocalTargets(tree.root), lambda: at_s)
    collected = collector.collect([])
    assert not collected.failures
    made: NodeReading = summarise(LastPass(), collected.readings, collector.offered, [], at_s)[0]["node_reading"]
    return made


def told(tree: KernelTree, prefix: str, file_system: ReadFileSystem = root_file_system) -> dict[str, float]:
    return {name: value for name, value in node_of(tree, file_system).extra.items() if name.startswith(prefix)}


def test_the_root_file_system_is_told_in_bytes_and_inodes(tree: KernelTree) -> None:
    asked: list[str] = []

    def disk(root: str) -> FileSystem:
        asked.append(root)
        return DISK

    assert told(tree, "rootfs_", file_system=disk) == {
        "rootfs_capacity_bytes": 100 * GIB,
        "rootfs_used_bytes": 60 * GIB,
        "rootfs_available_bytes": 35 * GIB,
        "rootfs_inodes": 1000,
        "rootfs_inodes_used": 600,
        "rootfs_inodes_free": 400,
    }
    assert asked == [str(tree.root)]


@pytest.mark.parametrize(
    ("capacity_bytes", "inodes", "wanted"),
    [
        pytest.param(GIB, 0, {"rootfs_capacity_bytes", "rootfs_used_bytes", "rootfs_available_bytes"}, id="no inodes"),
        pytest.param(0, 0, set(), id="a file system of nothing"),
    ],
)
def test_what_a_file_system_does_not_count_is_absent_and_not_0(
    tree: KernelTree, capacity_bytes: int, inodes: int, wanted: set[str]
) -> None:
    odd = FileSystem(capacity_bytes, used_bytes=0, available_bytes=0, inodes=inodes, inodes_free=0)
    assert told(tree, "rootfs_", file_system=lambda root: odd).keys() == wanted


def test_the_disk_below_a_generated_host_is_not_its_own(tree: KernelTree) -> None:
    assert root_file_system(str(tree.root)) is None
    assert told(tree, "rootfs_") == {}
    assert root_file_system(str(tree.root / "nowhere")) is None


def test_a_real_host_says_what_statvfs_says() -> None:
    found, wanted = root_file_system(""), os.statvfs("/")
    assert found is not None
    assert found.capacity_bytes == wanted.f_blocks * wanted.f_frsize
    assert found.inodes == wanted.f_files
    assert 0 <= found.used_bytes <= found.capacity_bytes - found.available_bytes


@pytest.mark.parametrize(
    ("card", "up", "speed"),
    [
        pytest.param({}, 1, 1_250_000_000, id="10 Gbit/s"),
        pytest.param({"speed": "-1"}, 1, None, id="virtual: a link, no speed"),
        pytest.param({"speed": "4294967295"}, 1, None, id="-1 without its sign"),
        pytest.param({"speed": None}, 1, None, id="no speed at all"),
        pytest.param({"state": "down", "carrier": "0"}, 0, None, id="no cable"),
        pytest.param({"state": "lowerlayerdown"}, 0, None, id="what is below it is down"),
        pytest.param({"state": "dormant"}, 0, None, id="not let in by the switch"),
        pytest.param({"state": "unknown"}, 1, 1_250_000_000, id="a driver that keeps no state: carrier"),
        pytest.param({"state": "unknown", "carrier": "0"}, 0, None, id="the same without carrier"),
        pytest.param({"state": "unknown", "carrier": None}, None, None, id="a driver that says nothing"),
        pytest.param({"state": None, "carrier": None}, None, None, id="no attributes"),
        pytest.param({"hardware": False}, None, None, id="made by the kernel"),
    ],
)
def test_a_card_has_a_link_or_none_or_does_not_say(
    tree: KernelTree, card: dict[str, Any], up: int | None, speed: int | None
) -> None:
    tree.card("eth0", **card)
    wanted = {"nic_up.eth0": up, "nic_speed_bytes_per_s.eth0": speed}
    assert told(tree, "nic_") == {name: value for name, value in wanted.items() if value is not None}


def test_cards_are_told_by_name_and_only_so_many(tree: KernelTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nic, "MOST_CARDS", 2)
    for name in ("eth2", "eth0", "eth1.7", "lo", "veth9"):
        tree.card(name, hardware=name.startswith("eth"))
    tree.card("caf\u00e9")  # the kernel allows any bytes; what is no plain text could not be told
    assert list(told(tree, "nic_up.")) == ["nic_up.eth0", "nic_up.eth1.7"]


def test_a_driver_that_has_no_answer_now_is_no_failure(tree: KernelTree, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError(errno.EINVAL if path.endswith("speed") else errno.EACCES, "as a card that is down")

    tree.card("eth0", state="up")
    read = read_record
    monkeypatch.setattr(host_files, "read_record", lambda path: refuse(path) if path.endswith("speed") else read(path))
    assert told(tree, "nic_") == {"nic_up.eth0": 1}
    monkeypatch.setattr(host_files, "read_record", refuse)
    host = HostReader(tree.root, Cgroups(tree.root))
    failures = Collector(host, known_sources(), LocalTargets(tree.root), lambda: 0.0).collect([]).failures
    assert list(failures) == ["nic"]


def test_slow_figures_are_read_seldom_and_say_how_old_they_are(tree: KernelTree) -> None:
    """A disk fills and a link goes in seconds; neither is worth a look in every pass."""
    tree.card("eth0")
    at_s = 0.0
    looks: list[float] = []

    def disk(root: str) -> FileSystem:
        looks.append(at_s)
        return DISK

    host = HostReader(tree.root, Cgroups(tree.root), disk)
    collector = Collector(host, known_sources(), LocalTargets(tree.root), lambda: at_s)
    memory, ages = LastPass(), []
    for at_s in (0.0, 2.0, 4.0, 12.0, 24.0):
        fields, memory = summarise(memory, collector.collect([]).readings, collector.offered, [], at_s)
        ages.append((fields["figure_ages_s"].get("rootfs_available_bytes"), fields["figure_ages_s"].get("nic_up")))
        assert {"rootfs_available_bytes", "nic_up.eth0"} <= fields["node_reading"].extra.keys()
    assert looks == [0.0, 2.0, 12.0, 24.0], "a second look at once, as behind every gate"
    assert ages[:3] == [(None, None), (None, None), (2.0, 2.0)]
    assert ages[-1] == (None, None)


@pytest.mark.parametrize("version", [1, 2])
def test_system_time_of_a_container_is_a_rate(tmp_path: Path, make_pod: NewPod, version: int) -> None:
    tree = KernelTree(tmp_path / "host", version)
    tree.machine()
    tree.node()
    pod = make_pod("web")
    target = Target("container", f"{pod.uid}/main", f"sublet/shared_cores/pod{pod.uid}/main", "share")
    at_s = 0.0
    collector = Collector(
        HostReader(tree.root, Cgroups(tree.root)), known_sources(), LocalTargets(tree.root), lambda: at_s
    )
    memory = LastPass()
    for at_s in (0.0, 2.0):
        tree.group(target.group, usage_ns=int(at_s * 2e9), system_ns=int(at_s * 15e8))
        fields, memory = summarise(memory, collector.collect([pod]).readings, collector.offered, [pod], at_s)
    (container,) = fields["pods"][0].containers
    assert (container.cpu_usage_cores, container.cpu_sys_cores) == pytest.approx((2.0, 1.5))
    gone = "cpuacct.stat" if version == 1 else "cpu.stat"
    os.unlink(tree.folder(target.group, "cpuacct") / gone)  # noqa: PTH108
    put(tree.folder(target.group, "memory") / ("memory.usage_in_bytes" if version == 1 else "memory.current"), "1\n")
    at_s = 60.0
    fields, memory = summarise(memory, collector.collect([pod]).readings, collector.offered, [pod], at_s)
    assert fields["pods"][0].containers[0].cpu_sys_cores is None
    assert NODE in memory.results
