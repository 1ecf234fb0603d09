"""CPU time of a pod by cgroup in either version, and limits of a pod as they change."""

from pathlib import Path

import pytest

from bench.kubernetes.agent import SANDBOX, AgentPod
from bench.kubernetes.spikes import Limits, LimitWatch


def test_cpu_time_is_the_pods_and_each_containers(tmp_path: Path) -> None:
    for folder, used_ns in ((tmp_path, 5e9), (tmp_path / "aa", 2e9), (tmp_path / "bb", 1e9)):
        folder.mkdir(exist_ok=True)
        (folder / "cpuacct.usage").write_text(f"{used_ns:.0f}\n")
    pod = AgentPod(tmp_path, {"aa": "agent"})
    assert pod.cpu_s() == 5.0
    assert pod.container_cpu_s() == {"agent": 2.0, SANDBOX: 1.0}


def test_cpu_time_is_read_in_version_2_as_well(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    assert AgentPod(tmp_path, {}).cpu_s() == 1.5


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        ({"cpuset.cpus": "0-1\n", "cpu.cfs_quota_us": "-1\n"}, Limits(2, float("inf"))),
        ({"cpuset.cpus": "1\n", "cpu.cfs_quota_us": "50000\n"}, Limits(1, 50000.0)),
        ({"cpuset.cpus": "\n", "cpu.max": "max 100000\n"}, Limits(2**63 - 1, float("inf"))),
        ({"cpuset.cpus": "0-3\n", "cpu.max": "70000 100000\n"}, Limits(4, 70000.0)),
    ],
)
def test_limits_are_read_in_either_version(files: dict[str, str], limits: Limits, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert LimitWatch([tmp_path, tmp_path / "gone"]).read() == limits


def test_a_reaction_is_the_first_limit_that_is_less_than_at_the_spike() -> None:
    two, one, less = Limits(2, 100.0), Limits(1, 100.0), Limits(2, 50.0)
    assert less.less_than(two)
    assert not two.less_than(one)
    watch = LimitWatch([], [(0.0, one), (1.0, two), (3.0, Limits(2, 200.0)), (3.5, less), (4.0, one)])
    assert watch.less_after(2.0) == 3.5
    assert watch.less_after(3.7) == 4.0
    assert watch.less_after(4.5) is None
