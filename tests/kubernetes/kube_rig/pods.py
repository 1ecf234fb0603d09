"""What kubelet says of a pod's containers, and what the kernel has for their groups."""

from pathlib import Path
from typing import Any

from kube_rig.cluster import Cluster
from shared.core.cgroups.knobs import V1_FILES, V2_FILES, Knob, Version, from_file
from shared.core.cpus.cpuset import CpuSet


def container_status(cluster: Cluster, pod: str, container: str) -> dict[str, Any]:
    """What kubelet says of a container."""
    statuses: list[dict[str, Any]] = cluster.get("pod", pod)["status"]["containerStatuses"]
    (found,) = (one for one in statuses if one["name"] == container)
    return found


def container_cpus(cluster: Cluster, pod: str, container: str) -> CpuSet:
    """The kernel's set for a container's group; empty: there is no such group now."""
    uid = cluster.get("pod", pod)["metadata"]["uid"]
    own = container_status(cluster, pod, container)["containerID"].partition("://")[2]
    files = (group / "cpuset.cpus" for group in cluster.groups(f"kubepods/**/pod{uid}/{own}"))
    return CpuSet.parse(next((file.read_text().strip() for file in files if file.exists()), ""))


def group_setting(cluster: Cluster, knob: Knob, pod: str, container: str = "") -> int | None:
    """The kernel's value for a pod's group or a container's; None: there is no such group now."""
    uid = cluster.get("pod", pod)["metadata"]["uid"]
    below = "/" + container_status(cluster, pod, container)["containerID"].partition("://")[2] if container else ""
    for group in cluster.groups(f"kubepods/**/pod{uid}{below}"):
        files: dict[Version, Path] = {1: group / V1_FILES[knob][1], 2: group / V2_FILES[knob]}
        for version, file in files.items():
            if file.exists():
                return int(from_file(knob, file.read_text(), version))
    return None
