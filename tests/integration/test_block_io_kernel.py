"""Limits of a disk on the real v1 kernel of this host: written, read back, repaired, given back."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.qrm.adapters.kernel.block_io import DiskLimits
from services.qrm.core.isolation.block_io import BlockLimits
from services.qrm.former_values import FormerValues
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Pod
from shared.core.cgroups.kubelet_layout import KubeletLayout

BLKIO = Path("/sys/fs/cgroup/blkio")
V1 = os.geteuid() == 0 and os.access(BLKIO / "cgroup.procs", os.W_OK)
DISK = next((path.name for path in sorted(Path("/sys/block").glob("*")) if path.name[:2] in ("vd", "sd", "nv")), "")
pytestmark = [pytest.mark.root, pytest.mark.skipif(not (V1 and DISK), reason="needs root, a disk and blkio of v1")]
BATCH = Pod(uid="b" * 8, name="b", qos="reclaimed_cores", kube_qos="BestEffort")
LIMITS = [BlockLimits(DISK, read_bps=1 << 20, write_iops=100)]
FILES = ("blkio.throttle.read_bps_device", "blkio.throttle.write_iops_device")


@pytest.fixture
def home() -> Iterator[Path]:
    """The group of best-effort pods, as kubelet makes it in every hierarchy."""
    cgroups, top = Cgroups(Path("/")), f"sublet-test-{uuid.uuid4().hex[:8]}"
    group = KubeletLayout("cgroupfs", top).reclaimed_group([BATCH]) or ""
    made = BLKIO / group
    try:
        cgroups.make(group)
        made.mkdir(parents=True)
        yield made
    finally:
        for folder in (made, *made.parents):
            if folder != BLKIO and BLKIO in folder.parents:
                folder.rmdir()
        assert cgroups.remove(top)


def test_the_kernel_has_the_limits_until_they_are_given_back(home: Path) -> None:
    layout = KubeletLayout("cgroupfs", home.relative_to(BLKIO).parts[0])
    disks = DiskLimits(Cgroups(Path("/")), layout, FormerValues())
    assert disks.settle([BATCH], LIMITS, 0.0, 0.0) == []
    number = Path(f"/sys/block/{DISK}/dev").read_text().strip()
    assert [(home / name).read_text() for name in FILES] == [f"{number} 1048576\n", f"{number} 100\n"]
    (home / FILES[0]).write_text(f"{number} 5000\n")
    assert disks.settle([BATCH], LIMITS, 1.0, 0.0) == []
    assert (home / FILES[0]).read_text() == f"{number} 1048576\n"
    assert disks.give_back() == []
    assert [(home / name).read_text() for name in FILES] == ["", ""]
