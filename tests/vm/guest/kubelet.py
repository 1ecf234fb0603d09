"""qrm on kubelet's groups, made here as kubelet and containerd make them, with both cgroup drivers, on cgroup v2."""

import subprocess
from pathlib import Path
from typing import Any

from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.placement.arrangement import Node, arrange
from services.qrm.core.writes.group_settings import GroupSettings
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.sysfs import read_topology
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.kubelet_layout import Driver, KubeletLayout
from shared.core.cgroups.layout import above

CGROUPS = Path("/sys/fs/cgroup")
HOST = Path("/")
CONTROLLERS = "+cpuset +cpu +memory"
BOUND = {"katalyst.kubewharf.io/memory_enhancement": '{"numa_binding": "true"}'}
STEPS = {"idle": (4, 44), "pod": (6, 42), "peak": (8, 40)}


def pod(uid: str, qos: str, kube: str, cores: int, annotations: dict[str, str] | None = None) -> Pod:
    """A pod of one container that containerd runs."""
    container = Container(name="c", cpu_request_millis=1000 * cores, id=f"containerd://{uid * 64}")
    return Pod.model_validate(
        {"uid": uid * 8, "name": f"pod-{uid}", "qos": qos, "kube_qos": kube, "containers": (container,),
         "annotations": annotations or {}}
    )  # fmt: skip


MIB = 1 << 20
LIMITED = Container(name="c", cpu_request_millis=2000, cpu_limit_millis=2000, memory_request_bytes=64 * MIB,
                    memory_limit_bytes=128 * MIB, id=f"containerd://{'a' * 64}")  # fmt: skip
ISOLATION = NodeRules(
    burst_percent=50, memory={"shared_cores": MemoryQos(50, 100, 75, wmark_ratio=0)}, identities={"shared_cores": 2}
)
PODS = {
    "shared": pod("a", "shared_cores", "Burstable", 2).model_copy(update={"containers": (LIMITED,)}),
    "reclaimed": pod("b", "reclaimed_cores", "BestEffort", 2),
    "dedicated": pod("d", "dedicated_cores", "Guaranteed", 4, BOUND),
}


def make(group: str) -> None:
    """A group as kubelet makes it: the controllers on, no set of its own."""
    here = CGROUPS
    for part in group.split("/"):
        (here / "cgroup.subtree_control").write_text(CONTROLLERS)
        here /= part
        here.mkdir(exist_ok=True)


class Kubelet:
    """A node with a process in every container."""

    def __init__(self, driver: Driver) -> None:
        self.layout = KubeletLayout(driver)
        self.leaves = {name: self.layout.container_group(one, one.containers[0]) or "" for name, one in PODS.items()}
        self.processes = []
        for leaf in self.leaves.values():
            make(leaf)
            process = subprocess.Popen(["sleep", "600"])
            (CGROUPS / leaf / "cgroup.procs").write_text(str(process.pid))
            self.processes.append(process)
        for group in (self.layout.pod_group(PODS["shared"]), self.leaves["shared"]):
            (CGROUPS / group / "cpu.max").write_text("200000 100000")  # as kubelet and containerd do
        cgroups = Cgroups(HOST)
        self.topology = read_topology(HOST)
        machine = HostMachine(cgroups, lambda: self.topology)
        self.groups = CgroupGroups(CgroupWriter(cgroups, self.layout.top), machine, self.layout)

    def step(self, share: int, reclaim: int) -> dict[str, Any]:
        """Apply one advice; what the kernel then grants, and to the processes."""
        advice = PoolAdvice.model_validate(
            {"node": "guest", "boot_id": "00c0ffee", "service": "advisor", "seq": 1, "sent_at": "2026-01-01T00:00:00Z",
             "policy": "canonical", "reclaimed_cpu_millis": 0, "reclaimed_memory_bytes": 0,
             "pools": (PoolSize(pool="share", cpus=share), PoolSize(pool="reclaim", cpus=reclaim))}
        )  # fmt: skip
        pods = tuple(PODS.values())
        what = arrange(Node(self.topology, {0: 1 << 32, 1: 1 << 32}, pods), advice, "reclaim-first")
        outcome = self.groups.apply(what, pods, GroupSettings(2000, 1 << 30, isolation=ISOLATION), 0.0)
        return {
            "problems": [f"{problem.group}: {problem.why}" for problem in outcome.problems],
            "granted": {name: self.read(leaf, "cpuset.cpus.effective") for name, leaf in self.leaves.items()},
            "allowed": {n: self.allowed(p) for n, p in zip(self.leaves, self.processes, strict=True)},
            "homes": [self.read(home, "cpuset.cpus") for home in self.layout.homes],
            "idle": {name: self.read(self.layout.pod_group(one), "cpu.idle") for name, one in PODS.items()},
            "limit": self.read(self.layout.homes[2], "memory.high"),
            "lacking": list(outcome.lacking),
            "isolation": self.isolation(),
        }

    def isolation(self) -> dict[str, list[str]]:
        """Files of the shared container, of its pod, and of the groups above, from the bottom up."""
        leaf = self.leaves["shared"]
        files = ("memory.min", "memory.low", "memory.high", "cpu.max.burst")
        return {name: [self.read(group, name) for group in (leaf, *above(leaf))] for name in files}

    def read(self, group: str, name: str) -> str:
        """A file of a group."""
        return (CGROUPS / group / name).read_text().strip()

    def allowed(self, process: "subprocess.Popen[bytes]") -> str:
        """The CPUs that a process may run on."""
        status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return next(line.split()[1] for line in status if line.startswith("Cpus_allowed_list"))

    def close(self) -> None:
        """Away with all of it."""
        for process in self.processes:
            process.kill()
            process.wait()
        for leaf in self.leaves.values():
            folder = CGROUPS / leaf
            while folder != CGROUPS and not any(child.is_dir() for child in folder.iterdir()):
                folder.rmdir()
                folder = folder.parent


def play(driver: Driver) -> dict[str, Any]:
    """All steps with one driver."""
    kubelet = Kubelet(driver)
    try:
        steps = {name: kubelet.step(*sizes) for name, sizes in STEPS.items()}
        kubelet.groups.restore(tuple(PODS.values()))
        steps["peak"]["given_back"] = kubelet.isolation()
        return steps
    finally:
        kubelet.close()


def report() -> dict[str, object]:
    """Both drivers."""
    return {"cgroupfs": play("cgroupfs"), "systemd": play("systemd")}
