"""Limits are wide only while somebody would end them, and the floor names every pod that may be wide."""

import asyncio
from pathlib import Path
from typing import Any

from qrm_world import FLOOR, Lease, Node, Run, conditions, pools
from test_kubelet_groups import BATCH, TENANT

LEASE_S = 10.0


class Unwatched(Lease):
    """A lease whose watchdog can be away."""

    away = False

    def ensure_watchdog(self) -> None:
        if self.away:
            raise ProcessLookupError("nobody holds lease.lock")


def test_without_a_watchdog_fresh_advice_counts_for_one_lease_and_then_the_floor_is_in_force(
    tmp_path: Path, virtual: Run
) -> None:
    async def story() -> None:
        lease = Unwatched()
        async with Node(tmp_path, lease, lease_s=LEASE_S) as node:
            lease.away = True
            for second in range(14):
                allocation = await node.hear(node.advice(6, 42))
                assert "nobody holds lease.lock" in conditions(allocation)["LeaseUnkept"]
                assert (pools(allocation) == FLOOR) == (second >= LEASE_S), second
                await asyncio.sleep(0.99)
            lease.away = False
            allocation = await node.hear(node.advice(6, 42))
            assert "LeaseUnkept" not in conditions(allocation)
            assert pools(allocation) != FLOOR
            lease.away = True  # for a moment: a container starts again
            for _ in range(5):
                assert pools(await node.hear(node.advice(6, 42))) != FLOOR
                await asyncio.sleep(0.99)

    virtual(story())


def test_a_pod_that_comes_between_two_advices_is_in_the_floor_before_it_is_placed(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        lease = Lease()
        async with Node(tmp_path, lease, lease_s=LEASE_S) as node:
            await node.hear(node.advice(6, 42))
            before = len(lease.renewals)
            await asyncio.sleep(1.0)
            node.pods.known = [TENANT, BATCH]
            await asyncio.sleep(1.0)
            left_s: list[Any] = [left for left, _floor in lease.renewals[before:]]
            assert left_s, "the lease on disk does not know of them"
            assert all(left <= LEASE_S for left in left_s), "nobody has given fresh advice"

    virtual(story())
