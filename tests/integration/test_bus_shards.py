"""The chart's hub divides what leaves say of their nodes; three centrals hear it together, and one is killed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bus_rights_rig import PASSWORD, Hub, Leaf, at_the_hub, divided, running, started_hub
from central_rig import central_on
from fixture_types import Until

from services.central.app import CentralApp
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.readiness import Readiness
from shared.wire import Wire

SHARDS, NODES, CENTRALS = 2, "abcd", ("central-a", "central-b", "central-c")
BEAT_S = 1.0
RULES = {"late_s": 12, "probe_max_age_s": 10}
"""Shorter than by default, and long enough for a machine that others keep busy."""


class Centrals:
    """Centrals at one hub; one that is killed says nothing any more, and its connection is gone."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self.apps = hub, dict[str, CentralApp]()
        self._buses: dict[str, NatsBus] = {}
        self._work: dict[str, asyncio.Task[None]] = {}

    async def start(self, name: str) -> None:
        bus = self._buses[name] = await self._hub.client(f"central:{PASSWORD}", f"central/{name}")
        wire = Wire(bus, SystemClock(), node=name, service="central")
        app = self.apps[name] = central_on(wire, SystemClock(), {"central": {"shards": SHARDS, "rules": RULES}})
        self._work[name] = asyncio.create_task(app.run())

    async def kill(self, name: str) -> None:
        """Without a word: nothing is closed, handed over or told."""
        self._work[name].cancel()
        await asyncio.gather(self._work[name], return_exceptions=True)
        await self._buses[name].drain()
        del self.apps[name]

    def here(self, name: str) -> object:
        return self.apps[name].state()["shards"]["heard_here"]

    def all_well(self) -> bool:
        states = [app.state() for app in self.apps.values()]
        return all(state["nodes"]["ready"] == len(NODES) and not state["paused"] for state in states)

    @staticmethod
    def is_silent(app: CentralApp, node: str) -> bool:
        """Whether all others were heard a beat and more after its last word, so that none of it is on its way."""
        others = [heartbeat.heard_at_s for name, heartbeat in app._ledger.items() if name != node]
        return min(others) > app._ledger[node].heard_at_s + 2 * BEAT_S

    async def close(self) -> None:
        for task in self._work.values():
            task.cancel()
        await asyncio.gather(*self._work.values(), return_exceptions=True)


class Beating:
    """The agents of all nodes, behind a leaf each."""

    def __init__(self) -> None:
        self.silent: set[str] = set()

    async def run(self, bus: NatsBus, node: str) -> None:
        wire = Wire(bus, SystemClock(), node=node, service="reporter")
        while True:
            if node not in self.silent:
                await wire.publish(wire.stamp(Readiness, ready=True))
            await asyncio.sleep(BEAT_S)


@contextlib.asynccontextmanager
async def beating(hub: Hub, folder: Path) -> AsyncIterator[Beating]:
    leaves = [Leaf(folder / f"leaf-{node}", hub, node) for node in NODES]
    for leaf in leaves:
        leaf.log_in_with(hub.reviews.issue(leaf.node))
    nodes = Beating()
    async with hub.central_answers():
        with running(*(leaf.server for leaf in leaves)):
            agents = [await at_the_hub(leaf) for leaf in leaves]
            tasks = [asyncio.create_task(nodes.run(bus, node)) for bus, node in zip(agents, NODES, strict=True)]
            yield nodes
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for agent in agents:
                await agent.drain()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    hub = started_hub(tmp_path / "hub", divided(SHARDS))
    central = await hub.client(f"central:{PASSWORD}", "central/c")
    await central.ensure_bucket(CONFIG_BUCKET)
    await central.put(CONFIG_BUCKET, "global", b"{}")
    yield hub
    await hub.close()


@pytest.mark.timeout(180)
async def test_a_central_that_is_killed_is_missed_by_no_node_and_no_verdict(
    tmp_path: Path, hub: Hub, until: Until
) -> None:
    centrals = Centrals(hub)
    async with beating(hub, tmp_path) as nodes:
        for name in CENTRALS:
            await centrals.start(name)
        await until(lambda: [centrals.here(name) for name in CENTRALS] == [[0], [1], []])
        await until(centrals.all_well)
        leader = centrals.apps["central-a"]
        assert leader._shards is not None
        shards = {node: heartbeat.shard for node, heartbeat in leader._ledger.items()}
        assert set(shards.values()) == {0, 1}, "the hub has divided them"
        # A node dies behind the ear that dies with it, and what the leader knows of it counts all the same.
        dead = next(node for node, shard in shards.items() if shard == 1)
        nodes.silent.add(dead)
        await until(lambda: centrals.is_silent(leader, dead))
        heard_at_s = leader._ledger[dead].heard_at_s
        await centrals.kill("central-b")
        while leader.state()["nodes"]["late"] == 0:
            for app in centrals.apps.values():
                assert set(app.state()["not_ready"]) <= {dead}
                assert app.state()["paused"] == []
            await asyncio.sleep(0.05)
        assert centrals.here("central-a") == [0]
        assert centrals.here("central-c") == [1]
        # Its silence counts from its last word: nothing began anew when the ear of its shard changed.
        assert leader._shards.heard.since_s(1) < heard_at_s == leader._ledger[dead].heard_at_s
        nodes.silent.clear()
        await until(centrals.all_well)
        await centrals.start("central-b")
        await until(lambda: [centrals.here(name) for name in CENTRALS] == [[0], [1], []])
        assert leader._shards.heard.since_s(1) < heard_at_s
    await centrals.close()
