"""Isolation on a real kubelet: a disk is throttled as the chart says, and the uninstallation gives it back."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kube_rig.cluster import Cluster
from kube_rig.product import Product
from rig_parts import until

from services.qrm.adapters.devices.queues import WBT_FILE, DiskQueues
from services.qrm.core.devices.disk_lines import Disk

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

SEEN_LIMIT_S, MORE_US = 60.0, 1000


def throttled() -> Disk:
    """A disk of this machine, which is the node's as well."""
    found = next((disk for disk in DiskQueues(Path("/")).disks() if disk.wbt_us), None)
    if found is None or not os.access(Path("/sys/block") / found.name / WBT_FILE, os.W_OK):
        pytest.skip("no disk of this machine has write-back throttling")
    return found


def wbt_us(disk: Disk) -> int | None:
    return next(one.wbt_us for one in DiskQueues(Path("/")).disks() if one.name == disk.name)


@pytest.fixture(scope="module")
def disk() -> Iterator[Disk]:
    """It has its own value again at the end, whatever happens."""
    found = throttled()
    assert found.wbt_us
    yield found
    DiskQueues(Path("/")).throttle(found, found.wbt_us)


def test_a_disk_is_throttled_while_sublet_is_there_and_what_the_kernel_lacks_is_named(
    cluster: Cluster, product: str, disk: Disk
) -> None:
    before_us = disk.wbt_us or 0
    installed = Product(cluster)
    qrm = {"disks": {"wbt": True, "io_cost": True, disk.kind: {"wbt_us": before_us + MORE_US, "qos": {}}}}
    installed.install({"node": {"disks": True}, "settings": {"qrm": qrm}})
    until(lambda: wbt_us(disk) == before_us + MORE_US, SEEN_LIMIT_S, "the disk's throttling")
    until(lambda: "SettingUnheeded" in installed.in_system("logs", "daemonset/sublet-node", "--container", "agent"),
          SEEN_LIMIT_S, "word of io.cost, which cgroup v1, or the throttling, forbids")  # fmt: skip
    installed.uninstall()
    assert wbt_us(disk) == before_us
    installed.leave()
