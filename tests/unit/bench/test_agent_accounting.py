"""CPU time of a pod by cgroup in either version, and the CPUs of a pod as they change."""

from pathlib import Path

from bench.kubernetes.agent import SANDBOX, AgentPod
from bench.kubernetes.spikes import CpusetWatch


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


def test_a_pod_has_the_fewest_cpus_of_all_its_groups(tmp_path: Path) -> None:
    for name, text in (("pod", "0-3\n"), ("main", "1,3\n"), ("inherits", "\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpuset.cpus").write_text(text)
    assert CpusetWatch([tmp_path / name for name in ("pod", "main", "inherits", "gone")]).read() == 2


def test_a_reaction_is_the_first_moment_with_fewer_cpus_than_at_the_spike() -> None:
    watch = CpusetWatch([], [(0.0, 1), (1.0, 2), (3.0, 4), (3.5, 3), (4.0, 1)])
    assert [watch.less_after(at_s) for at_s in (2.0, 3.2, 4.5)] == [4.0, 3.5, None]
