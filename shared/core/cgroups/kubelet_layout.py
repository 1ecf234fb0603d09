"""`KubeletLayout` names the pods' cgroups as kubelet makes them, for both of its cgroup drivers.

    cgroupfs   kubepods/burstable/pod<uid>/<container id>
    systemd    kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope

Guaranteed pods lie right below the top. A slice's name spells the whole way down to it with dashes, so UIDs have
underscores there. Below kubelet's own cgroup root ("kubelet" in kind) all of this begins one step further down. The
groups are kubelet's: Sublet never makes one, and leaves those above the pods as they are.

Facts: docs/facts/linux-cgroups.md#where-kubelet-puts-pods.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from shared.contracts.pod import Container, KubeQos, Pod, QosClass
from shared.core.cgroups.kube_qos import kube_qos

Driver = Literal["cgroupfs", "systemd"]
DRIVERS: tuple[Driver, ...] = get_args(Driver)

CONFIG_PREFIX = "kubernetes.io/config."
"""Prefix of the annotations that kubelet writes into the mirror of a static pod, and nobody else may."""
CONFIG_MIRROR, CONFIG_HASH = f"{CONFIG_PREFIX}mirror", f"{CONFIG_PREFIX}hash"
_HASH = re.compile(r"^[0-9a-f]{32}\Z")
_SCOPES = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}
_HOMES: Mapping[KubeQos, tuple[str, ...]] = {
    "Guaranteed": (),
    "Burstable": ("burstable",),
    "BestEffort": ("besteffort",),
}
_NOTHING: Mapping[QosClass, str] = {}


@dataclass(frozen=True, slots=True)
class KubeletLayout:
    """Kubelet's groups; see `shared.core.cgroups.layout.Layout`."""

    driver: Driver
    root: str = ""
    """Kubelet's cgroup root, one name; empty for the machine's."""

    @property
    def top(self) -> str:
        """See `Layout`."""
        return self._path()

    @property
    def classes(self) -> Mapping[QosClass, str]:
        """See `Layout`: kubelet knows no QoS classes of ours."""
        return _NOTHING

    @property
    def homes(self) -> Sequence[str]:
        """See `Layout`."""
        return tuple(self._path(*_HOMES[kube]) for kube in _HOMES)

    def home(self, kube: KubeQos) -> str:
        """The group right above the pods of one of Kubernetes' classes."""
        return self._path(*_HOMES[kube])

    def pod_group(self, pod: Pod) -> str:
        """See `Layout`; a pod of which kubelet has not said its class is looked for where its amounts put it."""
        return self._path(*_HOMES[_kube_qos(pod)], f"pod{_identity(pod)}")

    def container_group(self, pod: Pod, container: Container) -> str | None:
        """See `Layout`; there is none before the runtime has given the container an id."""
        # One container stands for too many; only the pod's own group describes all of them.
        if pod.as_one:
            return self.pod_group(pod)
        runtime, _, name = container.id.partition("://")
        if not name:
            return None
        # CRI-O puts its prefix before the id under both drivers.
        plain = self.driver == "cgroupfs" and runtime != "cri-o"
        leaf = name if plain else f"{_SCOPES[runtime]}-{name}"
        return f"{self.pod_group(pod)}/{leaf}{'.scope' if self.driver == 'systemd' else ''}"

    def reclaimed_group(self, pods: Sequence[Pod]) -> str | None:
        """See `Layout`: the best-effort group, as long as every pod in it is a reclaimed one and no other pod is."""
        reclaimed = {pod.uid for pod in pods if pod.qos == "reclaimed_cores"}
        best_effort = {pod.uid for pod in pods if _kube_qos(pod) == "BestEffort"}
        # A limit on that group would otherwise hit a pod of another class, or miss a reclaimed one.
        return self._path(*_HOMES["BestEffort"]) if reclaimed == best_effort else None

    def _path(self, *below: str) -> str:
        steps = [*filter(None, [self.root]), "kubepods", *below]
        if self.driver == "systemd":
            # A dash in the name of a slice is a step down, so systemd's kubelet writes UIDs with underscores.
            names = [step.replace("-", "_") for step in steps]
            steps = ["-".join(names[: depth + 1]) + ".slice" for depth in range(len(names))]
        return "/".join(steps)


def is_mirror(pod: Pod) -> bool:
    """Whether the pod shows a static pod of kubelet's: its Node is its controller (`shared.core.pods.kube_pod` compares
    the name), for the annotation alone is anybody's to write.
    """
    return pod.owner_kind == "Node" and CONFIG_MIRROR in pod.annotations


def file_hash(pod: Pod) -> str | None:
    """The hash of the file of a static pod, by which kubelet calls it; None where the pod is no mirror of one."""
    found = pod.annotations.get(CONFIG_HASH, "")
    return found if is_mirror(pod) and _HASH.match(found) else None


def _identity(pod: Pod) -> str:
    """What kubelet names a pod's group after: its UID, or the hash of a static pod's file.

    Of a static pod the API server has a mirror with another UID. The hash has no dashes, and UIDs of the API server
    have some, so no annotation can name the group of a pod that the API server made.
    """
    return file_hash(pod) or pod.uid


def _kube_qos(pod: Pod) -> KubeQos:
    """Kubernetes' class of a pod; reclaimed amounts are extended resources, which do not count for it."""
    # Said in the pod's status, by which kubelet goes as well.
    if pod.kube_qos is not None:
        return pod.kube_qos
    if pod.qos == "reclaimed_cores":
        return "BestEffort"
    return kube_qos(
        (
            {"cpu": c.cpu_request_millis, "memory": c.memory_request_bytes},
            {"cpu": c.cpu_limit_millis, "memory": c.memory_limit_bytes},
        )
        for c in pod.containers
    )
