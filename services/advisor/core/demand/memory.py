"""`estimate_bytes` counts the memory of one container (docs/facts/katalyst-memory.md#canonical-headroom)."""

from services.advisor.core.model.figures import Resident
from shared.contracts.pod import QosClass

TENANT_PERCENT = 110
"""Shared and dedicated containers count with a tenth on top (docs/facts/katalyst-memory.md#canonical-headroom)."""


def estimate_bytes(
    qos: QosClass, figures: Resident, request_bytes: int, unknown_bytes: int, percent: int = TENANT_PERCENT
) -> int:
    """Return the memory that counts for one container: measured memory plus margin, otherwise the request, otherwise
    `unknown_bytes`.

    For system_cores only resident memory counts, without margin. Reclaimed pods use the offer and count nothing.
    """
    if qos == "reclaimed_cores":
        return 0
    system = qos == "system_cores"
    # 0 counts as missing, as for CPU.
    known = [figure for figure in (figures.all[:1] if system else figures.all) if figure]
    if known:
        return -(-sum(known) * (100 if system else percent) // 100)
    return request_bytes if request_bytes > 0 else unknown_bytes
