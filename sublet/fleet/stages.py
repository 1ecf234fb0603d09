"""The stages that a fleet goes through, each of which fills in its part of the report."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

from shared.contracts.bus.subjects import ask_subject
from shared.contracts.services import CENTRAL
from shared.errors import Unavailable
from shared.ports import Bus, Clock
from sublet.ask import read_answer
from sublet.fleet.central_process import CENTRAL_START_S, NODE, CentralProcess, Counted
from sublet.fleet.herd import AFTER_AN_OUTAGE_S, Herd
from sublet.fleet.plan import FleetPlan
from sublet.fleet.report import FleetReport
from sublet.fleet.servers import FleetHub, FleetLeaf
from sublet.fleet.simulated_node import SimulatedNode

LOOK_S = 0.1
START_LIMIT_S, START_LIMIT_A_NODE_S = 120.0, 0.02
CHANGE_LIMIT_S = 120.0
ANSWER_LIMIT_S = 20.0
"""Central may have to wait for its turn on a machine that is busy; how long it takes is part of what is measured."""
AWAY_S = 2.0
SETTLE_S = 5.0

Progress = Callable[[str], None]
State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FleetCluster:
    """The API server that knows the nodes."""

    kubeconfig: Path
    writes: Callable[[], Awaitable[int]]
    """How many requests of central have changed something so far."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """All that runs."""

    plan: FleetPlan
    clock: Clock
    hub: FleetHub
    leaves: Sequence[FleetLeaf]
    centrals: Sequence[CentralProcess]
    """The first leads; the others hear heartbeats."""
    bus: Bus
    """In central's account, to ask it."""
    herds: Sequence[Herd]
    nodes: Sequence[SimulatedNode]
    cluster: FleetCluster | None
    """None: the bus alone."""
    progress: Progress

    @property
    def central(self) -> CentralProcess:
        """The one that leads."""
        return self.centrals[0]

    async def counted(self) -> Counted:
        """What all centrals together have heard themselves."""
        each = [await one.counted() for one in self.centrals]
        return Counted(sum(one.taken for one in each), sum(one.refused for one in each))


class Stages:
    """Runs them one after the other."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._plan, self._clock = fleet, fleet.plan, fleet.clock
        plan = fleet.plan
        self.report = FleetReport(plan.nodes, plan.period_s, plan.leaves, plan.shards)
        self._silent: set[str] = set()

    async def run(self) -> FleetReport:
        """All stages.

        Raises:
            Unavailable: one of the parts does not do what the next stage needs.
        """
        await self._start()
        await self._rest()
        await self._silence()
        await self._configure()
        await self._reconnect()
        counted = await self._fleet.counted()
        self.report.refused = counted.refused
        return self.report

    async def _start(self) -> None:
        self._say("waiting until central has heard all of them")
        for central in self._fleet.centrals[1:]:
            await central.wait_for_metrics(CENTRAL_START_S)
        limit_s = START_LIMIT_S + self._plan.late_s + self._plan.nodes * START_LIMIT_A_NODE_S
        await self._until(self._all_ready, limit_s, "central to hear all nodes")
        await self._clock.sleep(SETTLE_S)

    async def _rest(self) -> None:
        centrals, seconds = self._fleet.centrals, self._plan.seconds
        self._say(f"central at rest, {seconds:g} s")
        writes, before = await self._writes(), await self._fleet.counted()
        began_s, cpu_s = self._now(), [one.cpu_s for one in centrals]
        await self._clock.sleep(seconds)
        lasted_s = self._now() - began_s
        spent = [(one.cpu_s - before_s) / lasted_s for one, before_s in zip(centrals, cpu_s, strict=True)]
        self.report.cpu_of_a_core, *self.report.others_cpu_of_a_core = spent
        self.report.rss_bytes = self._fleet.central.rss_bytes
        after = await self._fleet.counted()
        self.report.heartbeats_per_s = (after.taken - before.taken) / lasted_s
        if writes is not None:
            self.report.writes_per_s = ((await self._writes() or 0) - writes) / lasted_s
        # Said at once: where a later stage fails, this much was measured.
        self._say(
            f"central at rest took {self.report.cpu_of_a_core:.1%} of a core, {self.report.rss_bytes / 1e6:.0f} MB, "
            f"{self.report.heartbeats_per_s:.0f} heartbeats a second"
        )

    async def _silence(self) -> None:
        """Some fall silent, and are to be noticed, and nobody else; then they speak again."""
        chosen = self._fleet.nodes[:: max(1, self._plan.nodes // self._plan.silent)][: self._plan.silent]
        self._say(f"{len(chosen)} nodes fall silent, to be noticed after {self._plan.late_s:g} s")
        self._fall_silent(chosen)
        seen_s: dict[str, float] = {}
        # Longer than it should take: where central itself did not hear the bus meanwhile, that time is no silence.
        deadline_s = self._now() + 3 * self._plan.late_s + CHANGE_LIMIT_S / 4
        while len(seen_s) < len(chosen) and self._now() < deadline_s:
            state = await self._look()
            now_s = self._now()
            for name in self._late(state):
                seen_s.setdefault(name, now_s)
            await self._clock.sleep(LOOK_S)
        for node in chosen:
            if node.name in seen_s:
                self.report.verdicts_s.append(max(0.0, seen_s[node.name] - node.beat_at_s - self._plan.late_s))
            else:
                self.report.missed_verdicts.append(node.name)
        self._speak_again(chosen)
        await self._until(self._all_ready, self._plan.period_s + CHANGE_LIMIT_S, "central to hear them again")

    async def _configure(self) -> None:
        self._say("a change of the configuration")
        before = max(node.revision for node in self._fleet.nodes)
        self._fleet.central.config_file.write_text("advisor:\n  period_s: 7\n")
        began_s, cpu_s = self._now(), process_time()

        async def on_all() -> bool:
            return min(node.revision for node in self._fleet.nodes) > before

        async def known() -> bool:
            state = await self._look()
            return bool(
                state["config"]["revision"] > before and state["config"]["nodes"]["applied"] == self._plan.nodes
            )

        await self._until(on_all, CHANGE_LIMIT_S, "all nodes to work with a change of the configuration")
        self.report.configured_s, self.report.configure_cpu_s = self._now() - began_s, process_time() - cpu_s
        self.report.told_s = max(herd.told_at_s or 0.0 for herd in self._fleet.herds) - began_s
        await self._until(known, CHANGE_LIMIT_S, "central to know of it")
        self.report.acknowledged_s = self._now() - began_s

    async def _reconnect(self) -> None:
        """All servers are killed and start again: all come back at once, half of them in a new life, one not at all."""
        servers, central, gone = (self._fleet.hub, *self._fleet.leaves), self._fleet.central, self._fleet.nodes[-1]
        self._say(f"all NATS servers are killed, and are back after {AWAY_S:g} s")
        for server in servers:
            await asyncio.to_thread(server.kill)
        self._fall_silent([gone])
        for node in self._fleet.nodes[::2]:
            node.restart()
        await self._clock.sleep(AWAY_S)
        before, cpu_s = await self._fleet.counted(), central.cpu_s
        for server in servers:
            await asyncio.to_thread(server.start)
        began_s = self._now()
        expected = before.taken + self._plan.nodes - 1

        async def heard() -> bool:
            return (await self._fleet.counted()).taken >= expected

        await self._until(heard, CHANGE_LIMIT_S, "central to hear all nodes again")
        self.report.reconnected_s = self._now() - began_s
        self.report.storm_cpu_s = central.cpu_s - cpu_s
        noticed = await self._becomes_late(gone.name)
        if not noticed and self._plan.nodes > 1:
            self.report.missed_verdicts.append(gone.name)
        self._speak_again([gone])

    async def _becomes_late(self, name: str) -> bool:
        self._say("a node that did not come back is to be noticed")
        deadline_s = self._now() + 2 * self._plan.late_s + self._plan.period_s + AFTER_AN_OUTAGE_S + CHANGE_LIMIT_S / 4
        while self._now() < deadline_s:
            if name in self._late(await self._look()):
                return True
            await self._clock.sleep(LOOK_S)
        return False

    def _fall_silent(self, nodes: Sequence[SimulatedNode]) -> None:
        for node in nodes:
            node.silent = True
            self._silent.add(node.name)

    def _speak_again(self, nodes: Sequence[SimulatedNode]) -> None:
        for node in nodes:
            node.silent = False

    async def _look(self) -> State:
        """What central says; who is called silent and is not is noted."""
        state = await self._asked()
        for name in self._late(state):
            if name not in self._silent and name not in self.report.false_verdicts:
                self.report.false_verdicts.append(name)
        return state

    async def _asked(self) -> State:
        """Raise Unavailable where central has ended; one that does not answer for once says nothing of anybody."""
        answer, why = b"", "no answer that can be read"
        try:
            answer = await self._fleet.bus.request(ask_subject(NODE, CENTRAL), timeout_s=ANSWER_LIMIT_S)
        except Unavailable as error:
            why = str(error)
        state = read_answer(answer)
        _ = self._fleet.central.pid
        return state or {"nodes": {}, "not_ready": {}, "paused": [why],
                         "config": {"revision": 0, "nodes": {"applied": 0}}}  # fmt: skip

    @staticmethod
    def _late(state: State) -> list[str]:
        named = [name for name, one in state["not_ready"].items() if one["state"] == "late"]
        verdicts = (state.get("cluster") or {}).get("lost_nodes", {}).get("nodes", {})
        judged = [name for name, one in verdicts.items() if one["verdict"] in ("suspect", "lost", "kubernetes")]
        return list(dict.fromkeys([*named, *judged]))

    async def _all_ready(self) -> bool:
        state = await self._look()
        ready = state["nodes"].get("ready", 0) == self._plan.nodes
        if ready:
            self._silent.clear()
        return ready and not state["paused"]

    async def _until(self, done: Callable[[], Awaitable[bool]], limit_s: float, what: str) -> None:
        deadline_s = self._now() + limit_s
        while not await done():
            if self._now() > deadline_s:
                raise Unavailable(f"waited {limit_s:.0f} s for {what}; central says: {await self._words()}")
            await self._clock.sleep(LOOK_S)

    async def _words(self) -> str:
        state = await self._asked()
        return f"{dict(state['nodes'])}, paused: {list(state['paused'])}"[:500]

    async def _writes(self) -> int | None:
        return None if self._fleet.cluster is None else await self._fleet.cluster.writes()

    def _now(self) -> float:
        return self._clock.monotonic()

    def _say(self, text: str) -> None:
        self._fleet.progress(f"{self._plan.nodes} nodes: {text}")
