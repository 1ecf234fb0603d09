"""Sublet on the rig's node: besides what its users see, its pods' groups and processes in this machine's kernel."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from kube_rig.cluster import Cluster
from kube_rig.installation import Installation


@dataclass(slots=True)
class Product(Installation):
    """An installation on the node of the rig."""

    cluster: Cluster

    def cpus(self, name: str) -> set[str]:
        """The cpusets of the pod's containers, as the kernel has them."""
        return self._texts(name, "/*", "cpuset.cpus")

    def kernel(self, name: str, *files: str) -> set[str]:
        """What the kernel has in a file of the pod's group and its containers', in either version's name."""
        return {text for below in ("", "/*") for file in files for text in self._texts(name, below, file)}

    def _texts(self, name: str, below: str, file: str) -> set[str]:
        uid = self.cluster.get("pod", name)["metadata"]["uid"]
        paths = (group / file for group in self.cluster.groups(f"kubepods/**/pod{uid}{below}"))
        return {path.read_text().strip() for path in paths if path.exists()}

    def processes(self, workload: str, container: str) -> list[int]:
        """The processes of a container in every pod of a workload, as this machine numbers them."""
        found: list[int] = []
        for pod in self.pods_of(workload):
            statuses = [*pod["status"].get("initContainerStatuses", []), *pod["status"].get("containerStatuses", [])]
            (ours,) = (one for one in statuses if one["name"] == container)
            group = f"kubepods/**/pod{pod['metadata']['uid']}/{ours['containerID'].removeprefix('containerd://')}"
            found += {int(pid) for one in self.cluster.groups(group) for pid in _pids(one)}
        return found

    def kill(self, workload: str, container: str) -> None:
        """SIGKILL to all processes of a container, from outside."""
        pids = self.processes(workload, container)
        assert pids, f"{workload}/{container} does not run"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def _pids(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()
