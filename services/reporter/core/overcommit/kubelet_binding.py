"""Reads from kubelet's checkpoints what its managers bind to pods of this node.

Facts: docs/facts/katalyst-overcommit.md#annotations, docs/facts/kubernetes.md#kubelets-checkpoints.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.contracts.kube.overcommit import CPU_MANAGER, GUARANTEED_CPUS, MEMORY_MANAGER, binds
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused

ManagerStates = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""The checkpoints of CPU and memory manager; None: there is no such file."""
POLICIES = ("none", "static")
"""In small letters; the memory manager writes them with capitals."""


@dataclass(frozen=True, slots=True)
class KubeletManagers:
    """The policies of kubelet's managers, None if unknown, and how many CPUs are bound to pods."""

    cpu_manager: str | None = None
    memory_manager: str | None = None
    guaranteed_cpus: int = 0

    @property
    def annotations(self) -> dict[str, str]:
        """Return annotations as Katalyst's agent writes them, without unknown managers."""
        found = {CPU_MANAGER: self.cpu_manager, MEMORY_MANAGER: self.memory_manager}
        if binds(self.cpu_manager):
            found[GUARANTEED_CPUS] = str(self.guaranteed_cpus)
        return {key: text for key, text in found.items() if text is not None}


def kubelet_binding(cpu: Mapping[str, Any] | None, memory: Mapping[str, Any] | None) -> KubeletManagers:
    """Read two checkpoints; None: there is no such file.

    Raises:
        Refused: one has an unknown format, so the bindings are unknown.
    """
    policy = _policy(cpu, "CPU")
    bound = 0 if cpu is None or not binds(policy) else _bound_cpus(cpu.get("entries") or {})
    return KubeletManagers(policy, _policy(memory, "memory"), bound)


def _policy(state: Mapping[str, Any] | None, manager: str) -> str | None:
    if state is None:
        return None
    policy = state.get("policyName")
    if not isinstance(policy, str) or policy.lower() not in POLICIES:
        raise Refused(
            f"checkpoint of kubelet's {manager} manager: policyName {policy!r:.40}; want one of {', '.join(POLICIES)}",
            reason="unknown_policy",
        )
    return policy


def _bound_cpus(pods: object) -> int:
    """Of all containers together: an init container may have had the CPUs that another one has now."""
    try:
        sets = [CpuSet.parse(cpus) for containers in pods.values() for cpus in containers.values()]  # type: ignore[attr-defined]
    except (ValueError, TypeError, AttributeError) as error:
        raise Refused(f"checkpoint of kubelet's CPU manager: {error!r:.200}", reason="unknown_shape") from error
    return len(CpuSet.union(sets))
