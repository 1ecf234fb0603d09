"""The controller of tide pools: runs passes over all pools while this central leads, each from the objects alone."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from services.central.core.tide.pool import FINALIZER, TidePoolSeen, refusals
from services.central.core.tide.seen import TideNodeSeen, TidePodSeen
from services.central.core.tide.status import Status, differs, refused_status
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.tide import TidePorts
from services.central.settings import TideSettings
from services.central.tide.pool_pass import PoolObjects, PoolPass
from services.central.tide.said import refusal_said, said_of_pass
from shared.core.node_mode import NodeSwitch
from shared.ports import Clock, ObjectMirror

REST_PER_PASS = 4.0
"""Seconds of rest for each that a pass took."""
LISTED = 20


class TideController:
    """Runs passes; a failed pool or node is reported, waits, and does not delay the others."""

    def __init__(
        self, ports: TidePorts, settings: TideSettings, clock: Clock, switch: NodeSwitch, changed: asyncio.Event
    ) -> None:
        """`switch`: in mode observe nothing is changed; `changed` is set when a mirror has changed."""
        self._ports, self._clock, self._switch = ports, clock, switch
        self._pools = EachNode(clock, "work on tide pool")
        self._pass = PoolPass(ports, settings, clock, EachNode(clock, "change sides"))
        self._said: dict[str, Status] = {}
        """By pool the status that was written last: a schema may drop fields of it."""
        schedule = PassSchedule(
            lambda: settings.pass_s, settings.settle_s, rest_per_pass=REST_PER_PASS, rest_limit_s=settings.pass_s
        )
        self._passes = Passes("tide", clock, changed, self.reconcile, schedule)

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """Pools, nodes and pods."""
        return (self._ports.pools, self._ports.nodes, self._ports.pods)

    def state(self) -> dict[str, Any]:
        """Return failures, and the newest evictions."""
        failures = {**self._pools.failures, **self._pass.failures}
        return {
            "failure": self.failure,
            "not_done": dict(sorted(failures.items())[:LISTED]),
            "evictions": self._ports.evictions.state()[-LISTED:],
        }

    async def run(self) -> None:
        """Run pass after pass until cancelled: on every change, and after `pass_s` without any."""
        self._said.clear()
        await self._passes.run()

    async def reconcile(self) -> None:
        """Work on every pool once.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        await self._ports.evictions.report_gone()
        pools = {seen.name: seen for seen in self._ports.pools.objects.values()}
        nodes, pods = list(self._ports.nodes.objects.values()), list(self._ports.pods.objects.values())
        living = [seen for seen in pools.values() if not seen.deleting]
        refused = refusals(living, [node.labels for node in nodes])

        async def one(name: str) -> None:
            seen = pools[name]
            if seen.deleting:
                await self._clear(seen)
            elif name in refused:
                await self._refuse(seen, refused[name])
            else:
                await self._work(seen, nodes, pods)

        self._pools.retain(pools)
        self._pass.retain(node.name for node in nodes)
        for gone in self._said.keys() - pools.keys():
            del self._said[gone]
        # Those that go first: a node must have lost the marks of one pool before the next can take it.
        await self._pools.each(sorted(pools, key=lambda name: (not pools[name].deleting, name)), one)

    async def _clear(self, seen: TidePoolSeen) -> None:
        """Remove the pool's marks from its nodes, and only then release the pool; also in mode observe."""
        if FINALIZER in seen.finalizers and await self._pass.clear(seen):
            await self._ports.writer.set_finalizer(seen, held=False)

    async def _refuse(self, seen: TidePoolSeen, refusal: tuple[str, str]) -> None:
        self._ports.decisions.say(refusal_said(seen, refusal))
        await self._tell(seen, refused_status(seen, refusal, self._clock.wall()))

    async def _work(self, seen: TidePoolSeen, nodes: Sequence[TideNodeSeen], pods: Sequence[TidePodSeen]) -> None:
        observes = self._switch.observes
        # Before the first mark: a pool that is deleted in between must not leave any.
        if not observes and FINALIZER not in seen.finalizers:
            await self._ports.writer.set_finalizer(seen, held=True)
        objects = PoolObjects.of(seen, nodes, pods)
        result = await self._pass.work(objects, observes=observes)
        self._ports.decisions.say(said_of_pass(seen, result))
        await self._tell(seen, objects.status(result, self._clock.wall()))

    async def _tell(self, seen: TidePoolSeen, status: Mapping[str, Any]) -> None:
        wanted = dict(status)
        if self._said.get(seen.name) != wanted and differs(seen, wanted):
            await self._ports.writer.write_status(seen.name, wanted)
        self._said[seen.name] = wanted
