"""Memory offered to reclaimed pods, and the limit of their cgroup.

Facts: docs/facts/katalyst-memory.md#canonical-headroom.
"""

from dataclasses import dataclass

from services.advisor.core.memory_guard import Zone, guarded_limit_bytes, next_limit_bytes
from shared.contracts.pod import QosClass

TENANT_PERCENT = 110
"""Shared and dedicated containers count with a tenth on top (docs/facts/katalyst-memory.md#canonical-headroom)."""
LIMIT_STEPS = 512
"""A limit is rounded up to a 512th of the machine's memory, so that it is not written anew for every page."""
DOWN_STEPS = 16
"""A limit shrinks by a 16th of the machine's memory in one round at most: the kernel reclaims while it is written."""


@dataclass(frozen=True, slots=True)
class Resident:
    """What is measured of a container's memory; None where missing.

    Where `shmem_bytes` is not told by itself, `cache_bytes` holds it too, as the kernel counts.
    """

    rss_bytes: int | None = None
    cache_bytes: int | None = None
    shmem_bytes: int | None = None

    @property
    def all(self) -> tuple[int | None, int | None, int | None]:
        """Every figure."""
        return self.rss_bytes, self.cache_bytes, self.shmem_bytes


def estimate_bytes(
    qos: QosClass, figures: Resident, request_bytes: int, unknown_bytes: int, percent: int = TENANT_PERCENT
) -> int:
    """Memory that counts for one container: measured with its margin, else the request, else `unknown_bytes`.

    Of system_cores only resident memory counts, without margin; reclaimed pods live on the offer and count nothing.
    """
    if qos == "reclaimed_cores":
        return 0
    system = qos == "system_cores"
    known = [figure for figure in (figures.all[:1] if system else figures.all) if figure]
    if known:
        return -(-sum(known) * (100 if system else percent) // 100)
    return request_bytes if request_bytes > 0 else unknown_bytes


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The node's memory, and what reclaimed pods use of it; None where it could not be read."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    reclaimed_used_bytes: int | None = None
    watermark_scale_factor: int | None = None


def canonical_offer_bytes(
    total_bytes: int, reserved_bytes: int, tenants_bytes: int, buffer_bytes: float = 0.0
) -> float:
    """Total - reserve - tenants, and a buffer on top; from 0 to total - reserve."""
    most = max(0, total_bytes - reserved_bytes)
    return min(max(0, most - tenants_bytes) + max(0.0, buffer_bytes), most)


def offered_bytes(node: NodeMemory, tenants_bytes: int, reserved_bytes: int, before_bytes: int) -> int:
    """Total - reserve - tenants, as the canonical rule has it, but never above what is really there for reclaimed pods.

    That is what they use plus what the kernel calls available. It binds only where the system itself uses more than
    the reserve. Where a figure is missing nothing is added to the offer of the last round.
    """
    if node.total_bytes is None:
        return before_bytes
    canonical = int(canonical_offer_bytes(node.total_bytes, reserved_bytes, tenants_bytes))
    if node.available_bytes is None:
        return min(canonical, before_bytes)
    return min(canonical, node.available_bytes + (node.reclaimed_used_bytes or 0))


def node_limit_bytes(node: NodeMemory, critical_bytes: int, before_bytes: int | None = None) -> int | None:
    """The limit for the reclaimed pool's cgroup over the whole node; None where a figure is missing: leave it as it is.

    It follows the last round's (`before_bytes`) up at once and down by a `DOWN_STEPS`th of the memory at most.

    Available memory stands for free memory: on a machine that has run for a while the page cache holds nearly all that
    is free, and a limit by free memory alone would freeze batch work at its present size.
    """
    total, available, used = node.total_bytes, node.available_bytes, node.reclaimed_used_bytes
    if total is None or available is None or used is None or node.watermark_scale_factor is None:
        return None
    wanted = guarded_limit_bytes([Zone(total, available, used)], node.watermark_scale_factor, critical_bytes)
    limit = next_limit_bytes(wanted, before_bytes, used, total // DOWN_STEPS)
    step = max(1, total // LIMIT_STEPS)
    return -(-limit // step) * step
