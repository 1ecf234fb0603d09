"""`compare_here` compares both agents of this node, through its bus, its cgroups and the API server."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.kubelet_tree import find_layout
from shared.adapters.kube.client import Kube
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation
from shared.errors import Unavailable
from shared.ports import Bus
from shared.settings import common_settings, raw_settings
from shared.wire import Wire
from sublet.ask import AskTarget, ask
from sublet.cluster.way import open_kube, way_to_cluster
from sublet.migrate.compare.difference import Comparison
from sublet.migrate.compare.evictions import EvictionsSeen, EvictionWatch
from sublet.migrate.compare.run import ComparisonEnd, compare_agents
from sublet.migrate.compare.sources import KoordinatorOffer, KoordinatorWish, SubletWish, first_words

PATIENCE_S = 10.0
"""Seconds for our agent's first word."""
Found = tuple[Comparison, EvictionsSeen, float]


async def compare_here(
    bus: Bus, where: AskTarget, for_s: float, kubeconfig: Path | None, tell: Callable[[float, int], None]
) -> Found:
    """Compare for so many seconds, or until Ctrl-C.

    Raises:
        Unavailable: no group of kubelet's is here, or Sublet says nothing.
        Refused: the node enforces.
    """
    clock, wire = SystemClock(), Wire(bus, SystemClock(), node=where.node, service="migrate")
    cgroups = Cgroups(common_settings(raw_settings()).host_root)
    group = find_layout(cgroups).homes[-1]
    way = way_to_cluster(kubeconfig)
    kube: Kube | None = open_kube(way) if way is not None else None
    try:
        offer = KoordinatorOffer(kube, where.node, clock) if kube is not None else None
        ours = SubletWish(await wire.newest(Allocation), await wire.newest(PoolAdvice))
        if not await first_words(ours, clock, PATIENCE_S):
            raise Unavailable(f"Sublet on {where.node} says nothing: see `sublet status`", reason="silent")
        watch = EvictionWatch(lambda: ask(bus, where.node, "evictor"), kube, where.node, clock)
        theirs = KoordinatorWish(cgroups, group, offer)
        started_s = clock.monotonic()
        until = ComparisonEnd(_stop_of_signals(), for_s)

        async def beat(passed_s: float, moments: int) -> None:
            tell(passed_s, moments)
            await watch.update()

        found, _ = await compare_agents(theirs, ours, clock, until, beat)
        await watch.update(now=True)
        return found, watch.seen(), clock.monotonic() - started_s
    finally:
        if kube is not None:
            await kube.close()
        await wire.stop()


def _stop_of_signals() -> asyncio.Event:
    """Set by Ctrl-C and by SIGTERM: what there is by then is printed."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
