"""What is measured on the substrates `host` and `sim`: the node, the pools, the NUMA nodes and every container."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from services.metrics.core.figures import NODE, Target
from services.metrics.core.summary import container_name
from shared.adapters.sysfs import numa_ids
from shared.contracts.pod import Pod
from shared.core.layout import POOL_OF_QOS, ROOT, class_group, container_group


class LocalTargets:
    """Names the targets by `shared.core.layout`; NUMA nodes as the kernel shows them now."""

    def __init__(self, host_root: Path, top: str = ROOT) -> None:
        self._host_root, self._top = host_root, top
        self._pools = [Target("pool", pool, class_group(qos, top)) for qos, pool in POOL_OF_QOS.items()]
        self._named: tuple[Sequence[Pod], tuple[int, ...], list[Target]] | None = None

    def __call__(self, pods: Sequence[Pod]) -> list[Target]:
        """The targets of one pass in the order they are read: what the tripwire probes as well comes first.

        The very same list as long as nothing has changed.
        """
        numas = numa_ids(self._host_root)
        if self._named is None or self._named[0] is not pods or self._named[1] != numas:
            by_numa = (Target("numa", str(numa)) for numa in numas)
            self._named = (pods, numas, [NODE, *self._pools, *by_numa, *self._containers(pods)])
        return self._named[2]

    def _containers(self, pods: Sequence[Pod]) -> Iterator[Target]:
        for pod in pods:
            for container in pod.containers:
                group = container_group(pod, container.name, self._top)
                yield Target("container", container_name(pod, container.name), group, POOL_OF_QOS[pod.qos])
