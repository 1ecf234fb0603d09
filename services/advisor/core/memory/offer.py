"""`offered_bytes` computes how much memory reclaimed pods may request.

Facts: docs/facts/katalyst-memory.md#canonical-headroom.
"""

from services.advisor.core.model.figures import NodeMemory


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
