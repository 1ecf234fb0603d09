"""The agent's own pod weighs as one that asked for a whole CPU, and no other pod does."""

import errno
import os
from pathlib import Path

import pytest
from plain_cgroups import PlainCgroups
from structlog.testing import capture_logs

from shared.adapters.host.own_pod import OwnPod
from shared.core.cgroups.knobs import Version
from shared.core.cgroups.kubelet_layout import KubeletLayout

LAYOUT = KubeletLayout("cgroupfs")
POD, AGENT, OTHER = "kubepods/burstable/podown", "kubepods/burstable/podown/a1", "kubepods/burstable/podother"
PID = 4711


def tree(folder: Path, version: Version) -> PlainCgroups:
    plain = PlainCgroups(folder, cpus="0-1", mems="0", version=version)
    for group in ("kubepods", "kubepods/burstable", POD, AGENT, OTHER, f"{OTHER}/b1"):
        plain.add(group)
        weight_file(plain, group).write_text("3\n")
    (plain.cgroups.folder(AGENT, "cpu") / "cgroup.procs").write_text(f"12\n{PID}\n")
    (plain.cgroups.folder(f"{OTHER}/b1", "cpu") / "cgroup.procs").write_text("471\n")
    return plain


def weight_file(plain: PlainCgroups, group: str) -> Path:
    name = "cpu.shares" if plain.cgroups.version == 1 else "cpu.weight"
    return plain.cgroups.folder(group, "cpu") / name


@pytest.mark.parametrize(("version", "raised"), [(1, "1024"), (2, "39")])
def test_the_pod_and_the_container_of_this_process_weigh_a_cpu(tmp_path: Path, version: Version, raised: str) -> None:
    plain = tree(tmp_path, version)
    OwnPod(plain.cgroups, LAYOUT, PID).raise_weight()
    found = {group: weight_file(plain, group).read_text().strip() for group in (POD, AGENT, OTHER, f"{OTHER}/b1")}
    assert found == {POD: raised, AGENT: raised, OTHER: "3", f"{OTHER}/b1": "3"}


def test_what_weighs_more_stays(tmp_path: Path) -> None:
    plain = tree(tmp_path, 1)
    weight_file(plain, POD).write_text("2048\n")
    OwnPod(plain.cgroups, LAYOUT, PID).raise_weight()
    assert weight_file(plain, POD).read_text().strip() == "2048"


def test_a_process_in_no_pod_changes_nothing(tmp_path: Path) -> None:
    plain = tree(tmp_path, 1)
    OwnPod(plain.cgroups, LAYOUT, 99).raise_weight()
    assert weight_file(plain, POD).read_text().strip() == "3"


def test_a_refusal_is_logged_once_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tree(tmp_path, 1)
    own = OwnPod(plain.cgroups, LAYOUT, PID)

    def refused(*_: object) -> bool:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(plain.cgroups, "write", refused)
        own.raise_weight()
        own.raise_weight()
    assert [line["event"] for line in logs] == ["own_pod.weight_refused"]
    own.raise_weight()
    assert weight_file(plain, AGENT).read_text().strip() == "1024"
