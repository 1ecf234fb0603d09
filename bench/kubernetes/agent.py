"""The agent's pod as the kernel accounts for it: CPU time by cgroup, memory by process, for each container."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_rig.cluster import Cluster
from kube_rig.product import Product

from bench.rigs.processes import memory_mib

SANDBOX = "sandbox"
"""The process that holds the pod's namespaces."""
AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident and proportional set size, added up."""

    rss_mib: float
    pss_mib: float

    def __add__(self, other: "Memory") -> "Memory":
        return Memory(self.rss_mib + other.rss_mib, self.pss_mib + other.pss_mib)

    def __str__(self) -> str:
        return f"{self.rss_mib:.0f} ({self.pss_mib:.0f}) MiB"


@dataclass(frozen=True, slots=True)
class AgentPod:
    """One life of the agent's pod: the group that accounts for its CPU time, and names of the groups below it."""

    group: Path
    containers: dict[str, str]

    @classmethod
    def found(cls, cluster: Cluster, product: Product) -> "AgentPod":
        """The one of this node."""
        (pod,) = product.pods_of("node")
        groups = cluster.groups(f"kubepods/**/pod{pod['metadata']['uid']}")
        group = next(one for one in groups if _usage_s(one) is not None)
        return cls(group, {_id_of(one): one["name"] for one in _statuses(pod)})

    def cpu_s(self) -> float:
        """CPU seconds of the whole pod since it began, ended containers too."""
        used_s = _usage_s(self.group)
        assert used_s is not None
        return used_s

    def container_cpu_s(self) -> dict[str, float]:
        """CPU seconds of each container that runs."""
        found = {self._name(group): _usage_s(group) for group in self._groups()}
        return {name: used_s for name, used_s in found.items() if used_s is not None}

    def memory(self) -> dict[str, Memory]:
        """Memory of the processes of each container."""
        found: dict[str, Memory] = {}
        for group in self._groups():
            for pid in _pids(group):
                try:
                    one = Memory(*memory_mib(pid))
                except (OSError, KeyError):  # it has ended by now
                    continue
                found[self._name(group)] = found.get(self._name(group), Memory(0.0, 0.0)) + one
        return found

    def main_pid(self) -> int:
        """The process of the services."""
        group = next(group for group in self._groups() if self._name(group) == AGENT)
        return min(_pids(group))

    def _groups(self) -> Iterator[Path]:
        return (one for one in sorted(self.group.iterdir()) if one.is_dir())

    def _name(self, group: Path) -> str:
        return self.containers.get(group.name, SANDBOX)


def restarts(product: Product) -> int:
    """How often containers of the agent's pod have ended and begun anew."""
    (pod,) = product.pods_of("node")
    return sum(one["restartCount"] for one in _statuses(pod))


def _statuses(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from pod["status"].get(kind, [])


def _id_of(status: dict[str, Any]) -> str:
    return str(status["containerID"]).partition("://")[2]


def _pids(group: Path) -> list[int]:
    return [int(line) for line in (group / "cgroup.procs").read_text().split()]


def _usage_s(group: Path) -> float | None:
    """CPU seconds of a group and all below it; None: this hierarchy does not account for them."""
    version_1, version_2 = group / "cpuacct.usage", group / "cpu.stat"
    if version_1.exists():
        return int(version_1.read_text()) / 1e9
    lines = version_2.read_text().splitlines() if version_2.exists() else []
    found = [line.partition(" ")[2] for line in lines if line.startswith("usage_usec ")]
    return int(found[0]) / 1e6 if found else None
