"""Kubelet's pins are CPUs that its static CPU manager has assigned to single containers. Sublet leaves them alone.

Kubelet keeps them in its own checkpoint. Kubelet replaces that file as a whole, so only a mount of its folder shows the
current one, and that folder also contains kubelet's keys. For an agent without that mount the kernel provides the same
information: kubelet assigns a container's CPUs when it creates the container. With the policy "none" there are no pins.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_checkpoints import CPU_MANAGER_FILE, FOLDER, read_checkpoint
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import Layout
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Unavailable
from shared.ports import PodSource

UNSEEN = "which CPUs kubelet has pinned is not known"


def exclusive_cpus(host_root: Path) -> dict[str, CpuSet]:
    """Return the CPUs of every pod that kubelet pinned, by UID; empty without kubelet, or without pins.

    Raises:
        Unavailable: the file exists and cannot be read, or has an unknown format.
    """
    try:
        state = read_checkpoint(host_root, CPU_MANAGER_FILE)
    except Unavailable as error:
        raise Unavailable(f"{error}; {UNSEEN}") from error
    if state is None:
        return {}
    try:
        if state["policyName"] != "static":
            return {}
        pods = (state.get("entries") or {}).items()
        return {str(uid): CpuSet.union(map(CpuSet.parse, containers.values())) for uid, containers in pods}
    # Never "nothing is pinned": placing others on CPUs that kubelet has given away would break its promise to a tenant.
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unavailable(f"{host_root / CPU_MANAGER_FILE}: {error!r}; {UNSEEN}") from error


class KernelPins:
    """Derives kubelet's pins from the pods' groups, for an agent that does not see kubelet's folder.

    Kubelet pins only containers of Guaranteed pods that request whole CPUs, for as long as they live, and writes only
    their own groups: the pod's group stays as wide as the node. Nothing is known about such a pod until its containers
    exist. Sublet leaves it alone until then, so what its containers have comes from kubelet and not from Sublet.
    """

    def __init__(self, cgroups: Cgroups, layout: Layout, pods: PodSource) -> None:
        self._cgroups, self._layout, self._source = cgroups, layout, pods
        self._generation: int | None = None
        self._pods: Sequence[Pod] = ()
        self._free: set[str] = set()
        """UIDs of pods that kubelet has not pinned; it pins a pod at its start or never."""

    def read(self) -> Mapping[str, CpuSet]:
        """Return pinned CPUs by UID, empty for a pod that is not known yet. Without a list of pods there are no
        pins."""
        try:
            generation = self._source.generation()
            if generation != self._generation:
                self._pods = [pod for pod in self._source.pods() if _whole(pod)]
                self._generation = generation
                # Pods that are gone, so that the set does not grow with the life of the agent.
                self._free &= {pod.uid for pod in self._pods}
        except Unavailable:
            return {}
        return {pod.uid: cpus for pod in self._pods if (cpus := self._pinned(pod)) is not None}

    def _pinned(self, pod: Pod) -> CpuSet | None:
        """Return the CPUs that kubelet has pinned for a pod; empty: not known yet; None: it has pinned none."""
        if pod.uid in self._free:
            return None
        whole = CpuSet.parse(self._cgroups.effective_cpus(self._layout.top) or "")
        narrowed = whole - (self._cpus(self._layout.pod_group(pod)) or whole)  # by Sublet, in this life or the last one
        # A set that Sublet wrote into the pod reaches its containers too, and would look like kubelet's pin.
        found = [] if narrowed else [self._container(pod, one, whole) for one in _whole(pod)]
        if None in found:
            return CpuSet()
        if cpus := CpuSet.union(cpus for cpus in found if cpus):
            return cpus
        # Kubelet decides at the container's creation and never later, so the answer holds for the pod's life.
        self._free.add(pod.uid)
        return None

    def _container(self, pod: Pod, container: Container, above: CpuSet) -> CpuSet | None:
        """Return the container's own CPUs; empty: it has none; None: the container does not exist yet."""
        group = self._layout.container_group(pod, container)
        if group is None or not self._cgroups.exists(group):
            return None
        cpus = self._cpus(group)
        # As many as it requested, and not all that exist: on a node of exactly that size an unpinned container looks
        # the same.
        own = len(cpus) * 1000 == container.cpu_request_millis and cpus != above
        return cpus if own else CpuSet()

    def _cpus(self, group: str) -> CpuSet:
        return CpuSet.parse(self._cgroups.raw(group, Knob.CPUS) or "")


def _whole(pod: Pod) -> list[Container]:
    """The containers that kubelet would pin under its policy "static"."""
    if pod.kube_qos != "Guaranteed":
        return []
    return [one for one in pod.containers if one.cpu_request_millis and one.cpu_request_millis % 1000 == 0]


def sees_folder(host_root: Path) -> bool:
    """Return whether kubelet's checkpoint is visible, readable or not."""
    # A folder that is there and closed to us must end in an error that names it, not in the guess
    # from the kernel's groups.
    return os.path.lexists(host_root / CPU_MANAGER_FILE) or _forbidden(host_root / FOLDER)


def _forbidden(folder: Path) -> bool:
    return folder.is_dir() and not os.access(folder, os.X_OK)
