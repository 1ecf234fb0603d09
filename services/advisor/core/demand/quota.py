"""`reclaim_quota_cores` limits the CPU time of reclaimed pods (docs/facts/katalyst-cpu.md#dynamic-quota)."""

from shared.errors import Refused


def reclaim_quota_cores(
    cpus: int | None,
    target_usage_ratio: float,
    current_usage_ratio: float | None,
    reclaim_usage_cores: float | None,
    floor_cores: float,
) -> float:
    """Return the current use of reclaimed pods plus what is missing to the target over their CPUs; never below the
    floor.

    Args:
        cpus: CPUs that reclaimed pods may use on the node.
        target_usage_ratio: target utilization of those CPUs by everything on them; `current_usage_ratio` is now.
        reclaim_usage_cores: use of the reclaimed pods.
        floor_cores: what they keep in any case.

    Raises:
        Refused: `missing_metric`, a usage is not known; `no_cpus`, there is no CPU to measure on.
    """
    if reclaim_usage_cores is None or current_usage_ratio is None:
        raise Refused("quota: the usage is not known; wait for the next sample", reason="missing_metric")
    if not cpus:
        raise Refused("quota: the NUMA node has no CPU for reclaimed pods", reason="no_cpus")
    return max(cpus * (target_usage_ratio - current_usage_ratio) + reclaim_usage_cores, floor_cores)
