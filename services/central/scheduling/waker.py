"""Wakes schedulers: a pod that the extender kept away is tried again as soon as a Node of the cluster changes."""

from services.central.core.scheduling.cluster.judge import Judge, Now
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.leadership.each_node import EachNode
from services.central.scheduling.mirrors import SchedulingMirrors
from shared.core.api_kind import NODES
from shared.errors import SubletError
from shared.ports import Clock, Objects

MOST_WRITES = 200
"""Most Nodes that are written in one pass; the others follow in the next ones."""


class SchedulerWaker:
    """Says on each Node what keeps pods away from it beyond its own amounts; a change of that is what wakes.

    The reclaimed resources in a Node's status wake by themselves.
    """

    def __init__(self, judge: Judge, mirrors: SchedulingMirrors, objects: Objects, clock: Clock, wake_s: float) -> None:
        self._judge, self._view, self._mirrors, self._objects = judge, judge.view, mirrors, objects
        self._clock, self._wake_s = clock, wake_s
        self._each = EachNode(clock, "scheduler woken")

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._clock.sleep(self._wake_s)
            try:
                await self.wake()
            except SubletError:
                continue  # said by whoever failed; all of it is looked at again

    async def wake(self) -> None:
        """Bring the annotations of Nodes to what is so.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        if self._mirrors.failure:
            return
        now = Now(self._clock.monotonic(), self._clock.wall().timestamp())
        wanted = {name: self._judge.refuses(name, now) for name in sorted(self._view.nodes.things)}
        self._each.retain(wanted)
        differ = [name for name, node in self._view.nodes.things.items() if (node.refuses or "") != wanted[name]]

        async def write(name: str) -> None:
            metadata = {"name": name, "annotations": {REFUSES: wanted[name] or None}}
            await self._objects.patch(NODES, {"metadata": metadata})

        await self._each.each(sorted(differ)[:MOST_WRITES], write)

    @property
    def failures(self) -> dict[str, str]:
        """Why a Node could not be written, by name."""
        return self._each.failures
