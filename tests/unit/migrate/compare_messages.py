"""What an observing node says of what it would give."""

from typing import Any

from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.allocation import Allocation
from shared.contracts.envelope import Reason
from shared.contracts.mode import Mode

HEAD: dict[str, Any] = {"v": 1, "node": "n1", "boot_id": "0badcafe", "seq": 1, "sent_at": "2026-01-01T00:00:00Z"}


def advice(quota_millis: int | None = None) -> PoolAdvice:
    return PoolAdvice(
        **HEAD, policy="koordinator", pools=(PoolSize(pool="reclaim", cpus=6), PoolSize(pool="share", cpus=2)),
        reclaimed_cpu_millis=0, reclaimed_memory_bytes=0, reclaimed_quota_millis=quota_millis,
    )  # fmt: skip


def allocation(mode: Mode = "dry-run") -> Allocation:
    why = Reason(rule="would-offer", numbers={"cpu_millis": 5000, "memory_bytes": 1 << 30})
    return Allocation(**HEAD, status="dry-run", mode=mode, why=(why,))
