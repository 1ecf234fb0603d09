"""Explanations put a round into the words of the advice: sizes of all pools, and the reasons of each region."""

from collections.abc import Mapping
from functools import lru_cache

from services.advisor.core.model.ramp import Ramp
from services.advisor.core.model.region import DEDICATED, NO_NUMA
from services.advisor.core.model.view import View
from services.advisor.core.sizing.pools import PoolSizes
from services.advisor.core.sizing.provision import Provision
from services.advisor.core.sizing.regions import plain
from shared.contracts.advice import PoolSize
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE

NAMED_REGIONS = 16
"""Regions beyond the share pool whose reasons are named; more would make the message long."""
_CLASS_POOLS = (SHARE, RECLAIM, RESERVE)


def class_sizes(sizes: PoolSizes) -> tuple[PoolSize, ...]:
    """The pools of the QoS classes, each as a whole."""
    pools = {SHARE: sizes.share_cpus, RECLAIM: sizes.reclaim_cpus, RESERVE: sizes.reserve_cpus}
    return tuple(_class_size(pool, cpus) for pool, cpus in pools.items())


@lru_cache(maxsize=256)
def _class_size(pool: str, cpus: int) -> PoolSize:
    return PoolSize(pool=pool, cpus=cpus)


def pod_sizes(provision: Provision, view: View) -> tuple[PoolSize, ...]:
    """The pools of single pods: named, bound and isolated ones, and what dedicated pods have on each NUMA node."""
    if len(provision.regions) == 1 and plain(view.containers):
        return ()
    sized = [
        PoolSize(
            pool=region.pool,
            cpus=provision.assembled.size_of(region.pool),
            numa=NO_NUMA if region.numa is None else region.numa,
            of_pods=True,
        )
        for region in provision.regions
        if region.pool not in _CLASS_POOLS
    ]
    own = {c.uid: dict(c.cpus_per_numa) for c in view.containers if c.dedicated}
    for numa in sorted({numa for cpus in own.values() for numa in cpus}):
        cpus = sum(one.get(numa, 0) for one in own.values())
        sized.append(PoolSize(pool=DEDICATED, cpus=cpus, numa=numa, of_pods=True))
    return tuple(sized)


def region_reasons(provision: Provision, before: Mapping[str, Ramp]) -> list[Reason]:
    """Why the regions beyond the share pool have their sizes."""
    if len(provision.regions) == 1:
        return []
    reasons = [
        Reason(
            rule=f"region {name}",
            numbers={
                "reserve_cores": round(one.need.footprint.reserve_cores, 6),
                "wanted_cores": round(one.wanted_cores, 6),
                "wanted": one.wanted_cpus,
                "before": before[name].size if name in before else None,
                "size": one.ramp.size,
                "throttled": one.need.region.pool in provision.assembled.throttled,
            },
        )
        for name, one in sorted(provision.regulated.items())
        if name != SHARE
    ]
    isolated = [
        Reason(rule=f"isolated {region.pool}", numbers={"size": provision.assembled.size_of(region.pool)})
        for region in provision.regions
        if region.type == "isolation"
    ]
    return (reasons + isolated)[:NAMED_REGIONS]


def named(reason: Reason, region: str) -> Reason:
    """A policy's reason with the name of its region."""
    return reason.model_copy(update={"rule": f"{region}: {reason.rule}"})
