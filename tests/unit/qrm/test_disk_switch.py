"""The settings of disks on one host: switched on and off while qrm runs, named where they cannot be, ended with it."""

from pathlib import Path

import pytest
from qrm_world import Node, Run, conditions

WBT = "sys/block/sda/queue/wbt_lat_usec"
ON = {"wbt": True, "io_cost": True, "hdd": {"wbt_us": 5, "qos": {}}}


@pytest.fixture
def wbt(tmp_path: Path) -> Path:
    """The throttling of the machine's disk, as a plain file."""
    queue = tmp_path / "host/sys/block/sda/queue"
    queue.mkdir(parents=True)
    (queue.parent / "dev").write_text("8:0\n")
    (queue / "rotational").write_text("1\n")
    (queue / "wbt_lat_usec").write_text("75000\n")
    return queue / "wbt_lat_usec"


def test_they_are_off_by_default(tmp_path: Path, wbt: Path, virtual: Run) -> None:
    async def scene() -> None:
        async with Node(tmp_path) as node:
            await node.hear(node.advice())
            assert wbt.read_text() == "75000\n"
            assert "SettingUnheeded" not in conditions(node.last)

    virtual(scene())


def test_they_hold_while_they_are_on_and_what_v1_lacks_is_named(tmp_path: Path, wbt: Path, virtual: Run) -> None:
    async def scene() -> None:
        async with Node(tmp_path, disks=ON) as node:
            await node.hear(node.advice())
            assert wbt.read_text().split()[0] == "5"
            assert conditions(node.last)["SettingUnheeded"] == "io.cost of disks: it needs cgroup v2"
            node.app.reconfigure({"disks": {"wbt": False, "io_cost": False}})
            await node.hear(node.advice())
            assert wbt.read_text().split()[0] == "75000"
            assert "SettingUnheeded" not in conditions(node.last)

    virtual(scene())


def test_who_leaves_the_host_gives_back(tmp_path: Path, wbt: Path, virtual: Run) -> None:
    async def scene() -> None:
        async with Node(tmp_path, disks=ON) as node:
            await node.hear(node.advice())
            assert wbt.read_text().split()[0] == "5"
        assert wbt.read_text().split()[0] == "75000"

    virtual(scene())


def test_a_node_that_observes_sets_nothing(tmp_path: Path, wbt: Path, virtual: Run) -> None:
    async def scene() -> None:
        async with Node(tmp_path, mode="observe", disks=ON) as node:
            await node.hear(node.advice())
            assert wbt.read_text() == "75000\n"

    virtual(scene())
