"""Name the targets of a pass: node, pools, NUMA nodes and containers, by the layout of the pods' cgroups."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from services.metrics.core.figures.target import NODE, Target
from services.metrics.core.reads.pooled import member_of
from services.metrics.core.sample.summary import container_name
from shared.adapters.host.sysfs import numa_ids
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import POOL_OF_QOS, RECLAIM, ROOT, SHARE, Layout, OwnLayout


class LayoutTargets:
    """Names the targets by a layout; NUMA nodes as the kernel shows them now."""

    def __init__(self, host_root: Path, layout: Layout) -> None:
        self._host_root, self._layout = host_root, layout
        self._pools = [Target("pool", POOL_OF_QOS[qos], group) for qos, group in layout.classes.items()]
        self._named: tuple[Sequence[Pod], tuple[int, ...], list[Target]] | None = None
        self._tenants = self._tenants_in(self._pools)

    def __call__(self, pods: Sequence[Pod]) -> list[Target]:
        """The targets of one pass in the order they are read: what the tripwire probes as well comes first.

        The very same list as long as nothing has changed.
        """
        numas = numa_ids(self._host_root)
        if self._named is None or self._named[0] is not pods or self._named[1] != numas:
            pools = self._pools or list(self._parts(pods))
            by_numa = (Target("numa", str(numa)) for numa in numas)
            self._named = (pods, numas, [NODE, *pools, *by_numa, *self._containers(pods)])
            groups = self._tenants_in(pools)
            # The same object where nothing changed: the tripwire compares identities, ten times a second.
            self._tenants = self._tenants if groups == self._tenants else groups
        return self._named[2]

    def tenants(self) -> tuple[str, ...]:
        """The groups that hold the tenants' pool, as named last; the very same ones as long as they do not change."""
        return self._tenants

    def _parts(self, pods: Sequence[Pod]) -> Iterator[Target]:
        """Return the pod groups whose sum stands for a pool without its own group.

        The reclaimed pool may have a group after all, with its limits. A pool without running pods is known to use
        nothing; of a pool with running pods, at least one group must exist.
        """
        pool_of_members = self._layout.reclaimed_group(pods)
        running = {POOL_OF_QOS[pod.qos] for pod in pods if pod.phase == "Running" and not pod.terminating}
        # The tenants' pool first: read closest to the probe that made the pass early.
        for qos, pool in sorted(POOL_OF_QOS.items(), key=lambda item: item[1] != SHARE):
            if pool == RECLAIM and pool_of_members is not None:
                yield Target("pool", pool, pool_of_members)
                continue
            if pool not in running:
                yield member_of(pool)
            yield from (member_of(pool, self._layout.pod_group(pod)) for pod in pods if pod.qos == qos)

    def _containers(self, pods: Sequence[Pod]) -> Iterator[Target]:
        for pod in pods:
            for container in pod.containers:
                group = self._layout.container_group(pod, container)
                if group is not None:
                    yield Target("container", container_name(pod, container.name), group, POOL_OF_QOS[pod.qos])

    def _tenants_in(self, pools: Sequence[Target]) -> tuple[str, ...]:
        return tuple(target.group for target in pools if target.name == SHARE and target.group)


class LocalTargets(LayoutTargets):
    """The targets on the substrates `host` and `sim`."""

    def __init__(self, host_root: Path, top: str = ROOT) -> None:
        super().__init__(host_root, OwnLayout(top))
