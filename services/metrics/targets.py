"""What is measured on the substrates `host` and `sim`: the node, the pools, the NUMA nodes and every container."""

from collections.abc import Sequence
from pathlib import Path

from services.metrics.core.figures import NODE, POOLS, Target
from services.metrics.core.summary import container_name
from shared.adapters.sysfs import numa_ids
from shared.contracts.pod import Pod
from shared.core.layout import container_group


class LocalTargets:
    """Names the targets by `shared.core.layout`; NUMA nodes as the kernel shows them now."""

    def __init__(self, host_root: Path) -> None:
        self._host_root = host_root

    def __call__(self, pods: Sequence[Pod]) -> list[Target]:
        """The targets of one pass in the order they are read: what the tripwire probes as well comes first."""
        numas = (Target("numa", str(numa)) for numa in numa_ids(self._host_root))
        containers = (
            Target("container", container_name(pod, container.name), container_group(pod, container.name))
            for pod in pods
            for container in pod.containers
        )
        return [NODE, *POOLS, *numas, *containers]
