"""Detects pods that use too much of the root file system.

Facts: docs/facts/katalyst-eviction.md#root-file-system-overuse.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from services.evictor.core.detectors.rootfs.pressure import RootfsLine, RootfsUser
from shared.contracts.pod import QosClass

FLOOR_BYTES = 20 << 30
FLOOR_RATIO = 0.1
"""No threshold is lower, whatever is configured."""

T = TypeVar("T")


def threshold_bytes(line: RootfsLine, capacity_bytes: int) -> float | None:
    """Return the use above which it is too much; None if nothing is configured."""
    if line.amount is not None:
        return max(line.amount, FLOOR_BYTES)
    return None if line.ratio is None else max(line.ratio, FLOOR_RATIO) * capacity_bytes


def overusing(
    pods: Iterable[RootfsUser[T]],
    thresholds: Mapping[QosClass, float | None],
    supported: Collection[QosClass],
    shared_namespaces: Collection[str],
) -> list[RootfsUser[T]]:
    """Supported pods above the threshold of their class, the largest first. Only classes with a threshold have any,
    and of shared pods only those of the named namespaces."""
    over = []
    for pod in pods:
        threshold = thresholds.get(pod.qos) if pod.qos in supported else None
        named = pod.qos != "shared_cores" or pod.namespace in shared_namespaces
        if threshold is not None and named and pod.used > threshold:
            over.append(pod)
    return sorted(over, key=lambda pod: (-pod.used, pod.namespace, pod.name))
