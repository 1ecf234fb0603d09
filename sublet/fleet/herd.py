"""A herd is the nodes behind one connection: each beats in its turn, reads the configuration itself, and says so."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence

from shared.contracts.bus.subjects import CONFIG_BUCKET, CONFIG_STREAM, GLOBAL_CONFIG_KEY, NODE_API
from shared.errors import Unavailable
from shared.ports import Bus, Clock, Entry
from sublet.fleet.simulated_node import SimulatedNode

TURN_S = 0.02
READ_TIMEOUT_S = 10.0
READS_AT_ONCE = 100
SERVICES_SAY_S, REPORTER_LOOKS_S = 2.0, 1.0
"""How often a service says which configuration it works with, and how often the reporter looks: an agent's defaults."""
AFTER_AN_OUTAGE_S = REPORTER_LOOKS_S
"""A reporter whose heartbeat is due says it at its next look once the bus is back."""
READ = f"{NODE_API}.DIRECT.GET.{CONFIG_STREAM}.$KV.{CONFIG_BUCKET}.{GLOBAL_CONFIG_KEY}"


class Herd:
    """Sends what its nodes say, at their own times, for as long as it runs."""

    def __init__(self, bus: Bus, clock: Clock, nodes: Sequence[SimulatedNode], period_s: float) -> None:
        self._bus, self._clock, self._period_s = bus, clock, period_s
        self.nodes = nodes
        # In the order in which they are due; who has spoken is due a period later, behind all others.
        self._due: deque[tuple[float, SimulatedNode]] = deque()
        self._soon: list[tuple[float, SimulatedNode]] = []
        self._roll = random.Random(len(nodes))  # noqa: S311 - spreads nodes over time, keeps no secret
        self.told_at_s: float | None = None
        """When this connection heard of the newest configuration."""
        self.sent = 0

    async def run(self) -> None:
        """Work until cancelled."""
        began_s = self._clock.monotonic()
        step_s = self._period_s / len(self.nodes)
        self._due.extend((began_s + place * step_s, node) for place, node in enumerate(self.nodes))
        await self._bus.watch(CONFIG_BUCKET, self._hear, keys=(GLOBAL_CONFIG_KEY,))
        was_connected = True
        while True:
            now_s = self._clock.monotonic()
            connected = self._bus.connected
            if connected and not was_connected:
                self.beat_within(AFTER_AN_OUTAGE_S)
            was_connected = connected
            await self._speak(now_s)
            await self._clock.sleep(TURN_S)

    def beat_within(self, seconds: float) -> None:
        """Every node beats once more, at a moment of its own."""
        self._say_soon(self.nodes, seconds)

    async def _speak(self, now_s: float) -> None:
        while self._due and self._due[0][0] <= now_s:
            due_s, node = self._due.popleft()
            self._due.append((due_s + self._period_s, node))
            await self._beat(node, now_s)
        if self._soon and self._soon[0][0] <= now_s:
            late = [node for at_s, node in self._soon if at_s <= now_s]
            self._soon = self._soon[len(late) :]
            for node in late:
                await self._beat(node, now_s)

    async def _beat(self, node: SimulatedNode, now_s: float) -> None:
        if not node.silent and await self._bus.publish(node.subject, node.heartbeat(self._clock.wall())):
            node.beat_at_s = now_s
            self.sent += 1

    def _say_soon(self, nodes: Sequence[SimulatedNode], within_s: float) -> None:
        now_s = self._clock.monotonic()
        added = [(now_s + self._roll.uniform(0, within_s), node) for node in nodes]
        self._soon = sorted([*self._soon, *added], key=_when)

    def _hear(self, entry: Entry) -> None:
        self.told_at_s = self._clock.monotonic()
        task = asyncio.get_running_loop().create_task(self._read_all(entry.revision))
        self._reading = task  # so that it is not collected while it runs

    async def _read_all(self, revision: int) -> None:
        """Each node reads the entry itself, as each watches the bucket itself."""
        for first in range(0, len(self.nodes), READS_AT_ONCE):
            some = [node for node in self.nodes[first : first + READS_AT_ONCE] if node.revision < revision]
            read = await asyncio.gather(*(self._read(node) for node in some))
            taken = [node for node, well in zip(some, read, strict=True) if well]
            for node in taken:
                node.configure(revision)
            self._say_soon(taken, SERVICES_SAY_S + REPORTER_LOOKS_S)

    async def _read(self, node: SimulatedNode) -> bool:
        if node.silent:
            return False
        try:
            await self._bus.request(READ, timeout_s=READ_TIMEOUT_S)
        except Unavailable:
            return False
        return True


def of_connections(nodes: Sequence[SimulatedNode], connections: int) -> list[Sequence[SimulatedNode]]:
    """The nodes dealt out over so many connections, in turn."""
    return [nodes[first::connections] for first in range(connections)]


def _when(row: tuple[float, SimulatedNode]) -> float:
    return row[0]
