"""`HostFacts` holds the input of a node's checks. A missing fact is `Unknown` with its reason."""

from dataclasses import dataclass
from typing import Literal, Protocol

from shared.core.cgroups.kubelet_layout import Driver, KubeletLayout
from sublet.doctor.finding import Known

BusState = Literal["reached", "absent", "refused"]
AgentPlace = Literal["here", "elsewhere", "none"]
KUBELET_ROOT = "/var/lib/kubelet"


@dataclass(frozen=True, slots=True)
class Kubelet:
    """How kubelet on this node was started."""

    driver: Driver
    cpu_manager_policy: str
    root: str = KUBELET_ROOT
    """Its folder, where it keeps its checkpoints."""


@dataclass(frozen=True, slots=True)
class CpuManager:
    """Kubelet's checkpoint of pinned CPUs."""

    policy: str
    pinned_pods: int


@dataclass(frozen=True, slots=True)
class BusSeen:
    """The NATS server at the configured address: it took the login, is not there, or refused the login."""

    url: str
    state: BusState
    words: str = ""
    agent: AgentPlace = "none"
    """Whether an agent of Sublet, which would need it, runs in this network, in one of its own (a pod's), or not."""


@dataclass(frozen=True, slots=True)
class PolicySeen:
    """What of the hub's ports could be reached from an agent's pod."""

    host: str
    allowed: bool
    """The one that its NetworkPolicy opens to agents."""
    forbidden: bool
    """One that it does not."""


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One node, as seen from a process on it."""

    root: bool
    """Whether this process may do what an agent may."""
    kernel: Known[str]
    """Release of the kernel, as `uname -r`."""
    pressure: Known[bool]
    """Whether the kernel tells pressure stall information."""
    cgroup_version: Known[int]
    controllers: Known[frozenset[str]]
    """Controllers of the root: the mounted hierarchies on v1, `cgroup.controllers` on v2."""
    read_only: Known[tuple[str, ...]]
    """Folders of the cgroup root that cannot be written."""
    cpu_idle: Known[bool]
    """Whether groups have the setting `cpu.idle`."""
    pod_controllers: Known[frozenset[str]]
    """Controllers that kubelet's top group has; on v2 it must hand them down itself."""
    kubelet: Known[Kubelet]
    layouts: Known[tuple[KubeletLayout, ...]]
    """Layouts whose top group is there: two after a change of the driver without a reboot."""
    cpu_manager: Known[CpuManager]
    state_dir: str
    state_free_bytes: Known[int]
    state_in_memory: Known[bool]
    """Whether a reboot clears the state folder."""
    memory_available_bytes: Known[int]
    other_agents: Known[tuple[str, ...]]
    bus: Known[BusSeen]
    policy: Known[PolicySeen]
    """Whether the cluster's network keeps to NetworkPolicies."""
    selinux_enforced: Known[bool] = False


class NodeProbe(Protocol):
    """Something that can look at a node."""

    async def facts(self) -> HostFacts:
        """Everything, without raising: what cannot be had is `Unknown`."""
        ...
