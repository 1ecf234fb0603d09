"""What the plan of a pass over a large tide pool costs, and how long the rest of central waits for its turn meanwhile.

python -m bench.cluster.tide_pass
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import MappingProxyType

from bench.rigs.report import Row, print_rows, progress
from services.central.core.tide.marks import BATCH_UNWANTED, POOL_LABEL, SERVICES_UNWANTED, TIDE_LABEL, TYPE_LABEL
from services.central.core.tide.placement import PodToleration, TidePlacement
from services.central.core.tide.plan import PoolPlan, TidePace, plan_pool
from services.central.core.tide.pool import TidePoolSeen, pool_of
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen
from services.central.tide.pool_pass import PoolObjects, planned

SIZES, PODS_A_NODE, TRIES = (500, 5000), 20, 5
PACE, NOW = TidePace(600, 10, 3600), datetime(2026, 1, 1, tzinfo=UTC)
GIB = 1 << 30


def pool() -> TidePoolSeen:
    """A pool without reserves."""
    spec = {"nodeConfigs": {"nodeSelector": {"pool": "green"}}}
    return pool_of({"metadata": {"name": "green", "uid": "1"}, "spec": spec})


def node(number: int) -> TideNodeSeen:
    """Two of three are the services'."""
    name, online = f"node-{number:05d}", number % 3 != 0
    side, taint = ("online", BATCH_UNWANTED) if online else ("offline", SERVICES_UNWANTED)
    labels = {"pool": "green", "kubernetes.io/hostname": name, POOL_LABEL: "green", TYPE_LABEL: side,
              TIDE_LABEL: "true", "tide.katalyst.kubewharf.io/reserve": "false"}  # fmt: skip
    amounts = MappingProxyType({"cpu": 64_000, "memory": 256 * GIB, "pods": 110})
    return TideNodeSeen(name, f"uid-{name}", labels, (taint,), amounts)


def pod(number: int, on: str) -> TidePodSeen:
    """A service's or a batch pod, by the side of its node."""
    online = number // PODS_A_NODE % 3 != 0
    tolerated = BATCH_UNWANTED if online else SERVICES_UNWANTED
    placement = TidePlacement((("pool", "green"),), None, (PodToleration(tolerated.key, "Exists", "", ""),))
    requests = {"cpu": 500 + number % 7 * 100, "memory": GIB, "pods": 1}
    return TidePodSeen(f"team/pod-{number}", f"uid-{number}", on, online, requests, placement)


async def longest_wait_ms(work: Callable[[], Awaitable[object]]) -> float:
    """For how long at most another task waits for its turn beside this work."""
    longest_s, last_s = 0.0, time.perf_counter()
    task = asyncio.ensure_future(work())
    while not task.done():
        await asyncio.sleep(0)
        now_s = time.perf_counter()
        longest_s, last_s = max(longest_s, now_s - last_s), now_s
    return longest_s * 1000


async def rows(nodes: int) -> list[Row]:
    """The rows of a pool of so many nodes."""
    progress(f"a tide pool of {nodes} nodes")
    seen, machines = pool(), [node(number) for number in range(nodes)]
    pods = [pod(number, machines[number // PODS_A_NODE].name) for number in range(nodes * PODS_A_NODE)]
    view = PoolObjects.of(seen, machines, pods).view

    async def at_once() -> PoolPlan:
        return plan_pool(view, NOW, PACE)

    async def aside() -> PoolPlan:
        return await planned(view, NOW, PACE)

    spent_s, waits_ms, blocked_ms = list[float](), list[float](), list[float]()
    for _ in range(TRIES):
        began_s = time.process_time()
        blocked_ms.append(await longest_wait_ms(at_once))
        spent_s.append(time.process_time() - began_s)
        waits_ms.append(await longest_wait_ms(aside))
    size = f"{nodes} nodes, {len(pods)} pods"
    waits = f"{statistics.median(waits_ms):.0f} ms, made at once {statistics.median(blocked_ms):.0f} ms"
    return [
        Row(f"a plan of a tide pool, CPU, {size}", f"{statistics.median(spent_s):.2f} s", TRIES, "-"),
        Row(f"a plan of a tide pool, longest wait of the rest of central, {size}", waits, TRIES, "50 ms"),
    ]


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return [row for nodes in SIZES for row in await rows(nodes)]


def main() -> None:
    """Print the table."""
    print_rows(asyncio.run(measure()))


if __name__ == "__main__":
    main()
