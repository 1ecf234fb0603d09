"""Write-back throttling of this host's disk: written, read back, repaired, given back; io.cost named on v1."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.devices.disk_tuning import DiskTuning
from services.qrm.adapters.devices.queues import WBT_FILE, DiskQueues
from services.qrm.core.devices.disk_lines import NO_DISK_RULES, Disk, DiskClassRules, DiskRules
from services.qrm.former_values import FormerValues
from shared.adapters.host.cgroup import Cgroups

HOST = Path("/")


def _throttled() -> Disk | None:
    return next((disk for disk in DiskQueues(HOST).disks() if disk.wbt_us), None)


WRITABLE = os.geteuid() == 0 and os.access("/sys/block", os.R_OK) and _throttled() is not None
pytestmark = [pytest.mark.root, pytest.mark.skipif(not WRITABLE, reason="needs root and a disk that is throttled")]


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk of this host, which has its own value again at the end, whatever happens."""
    found = _throttled()
    assert found is not None
    assert found.wbt_us
    yield found
    DiskQueues(HOST).throttle(found, found.wbt_us)


def test_the_kernel_has_it_until_another_life_gives_it_back(disk: Disk, tmp_path: Path) -> None:
    def life() -> DiskTuning:
        cgroups = Cgroups(HOST)
        former = FormerValues(FormerValuesFile(tmp_path, "boot"), cgroups.exists)
        former.resume()
        return DiskTuning(cgroups, DiskQueues(HOST), former)

    file, before = Path("/sys/block") / disk.name / WBT_FILE, disk.wbt_us or 0
    rules = DiskRules(wbt=True, cost=True, classes={disk.kind: DiskClassRules(before + 1000)})
    tuning = life()
    assert tuning.settle(rules, 0.0, 0.0) == []
    assert file.read_text() == f"{before + 1000}\n"
    file.write_text("0\n")
    assert tuning.settle(rules, 1.0, 0.0) == []
    assert file.read_text() == f"{before + 1000}\n"
    if tuning.cgroups.version == 1:
        assert tuning.unheeded == ("io.cost of disks: it needs cgroup v2",)
    assert life().settle(NO_DISK_RULES, 0.0, 0.0) == []
    assert file.read_text() == f"{before}\n"
