"""Runs a scenario: the six services in one process, an in-memory bus, virtual time, and the simulated host."""

import asyncio
import json
import os
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.adapters.clock import LoopClock
from shared.adapters.host.cgroup import Cgroups
from shared.app import Plan, Runner
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.bus.subjects import event_filter
from shared.contracts.eviction import EvictionEvent
from shared.contracts.kube.quantities import parse_units
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY, QosClass
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import class_group
from shared.core.cpus.cpuset import CpuSet
from shared.errors import Refused, SubletError
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.settings import CommonSettings, merge
from sublet.sim.host import SimHost
from sublet.sim.report import Report, ReportRow, SimView, differences
from sublet.sim.scenario import Scenario, Step
from sublet.sim.virtual_time import VirtualTimeLoop

NODE = "sim"
TICK_S = 1.0
"""How often the simulated kernel shows new figures, and how often the story is looked at."""
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it; a disk would take most of the time
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "metrics": {"period_s": TICK_S, "probe_s": TICK_S},
}
"""Nothing changes between two ticks: the services need not look more often."""


def run_scenario(scenario: Scenario) -> Report:
    """Run a scenario from its first step to its last, in a folder of its own that is removed at the end.

    Raises:
        SubletError: the services cannot be built (a setting of the scenario cannot be used, …).
    """
    in_memory = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sublet-sim-", dir=in_memory) as folder:
        return in_virtual_time(SimulationRun(scenario, Path(folder)).play())


def in_virtual_time(work: Coroutine[Any, Any, Report]) -> Report:
    """Run a coroutine on an event loop on which waiting takes no time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def plans() -> Sequence[Plan]:
    """Every service, as on a real node, central first: it makes the streams."""
    from services.central.main import PLAN as CENTRAL
    from sublet.node import PLANS

    return (CENTRAL, *PLANS)


@dataclass
class SimulationRun:
    """One run of a scenario, and what was seen of it."""

    scenario: Scenario
    folder: Path
    rows: list[ReportRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    events: dict[str, EvictionEvent] = field(default_factory=dict)
    checks: int = 0
    _violations: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.clock = LoopClock()
        self._common = CommonSettings(
            node=NODE, substrate="sim", host_root=self.folder / "host", state_dir=self.folder / "state"
        )
        self._common.state_dir.mkdir()
        self.host = SimHost.create(self._common.host_root, self.scenario.machine, self._common.state_dir)
        self._cgroups, self._cnr = Cgroups(self._common.host_root), self._common.state_dir / "cnr.json"

    async def play(self) -> Report:
        """Build everything, live through the steps, stop everything.

        Raises:
            SubletError: the services cannot be built.
        """
        bus = MemoryBus(clock=self.clock, name="sim")
        # Before the services are built: the first event of a story may come in its first tick.
        await bus.subscribe(event_filter(), self._take_event)
        runner = Runner(plans(), bus, self.clock, self._common, merge(SETTINGS, self.scenario.settings))
        self._start_s = self.clock.monotonic()
        # The host first: the services read files at their start.
        await self._tick()
        stop = asyncio.Event()
        services = asyncio.create_task(runner.run(stop))
        try:
            await self._live(services)
        finally:
            stop.set()
            if await services:
                self.problems.append("a service died; its reason is in the log")
        return Report(
            scenario=self.scenario.name,
            about=self.scenario.about,
            rows=self.rows,
            checks=self.checks,
            problems=self.problems,
        )

    async def _live(self, services: asyncio.Task[int]) -> None:
        """Let time pass until the last step is done. In each tick: the host, then the services, then a look.

        The services begin half a tick after the host and look once a tick: every sample covers whole ticks.
        """
        to_do = self._do_due(list(self.scenario.steps))
        while not services.done():
            await self.clock.sleep(TICK_S / 4)
            self._look()
            to_do = self._check_due(to_do)
            if not to_do:
                break
            await self.clock.sleep(TICK_S / 4)
            to_do = self._do_due(to_do)
            await self._tick()

    async def _tick(self) -> None:
        self.host.step(self.clock.monotonic())
        await self.clock.sleep(TICK_S / 2)

    @property
    def _t_s(self) -> float:
        """The tick that this moment belongs to, in seconds since the start."""
        # The eighth keeps a sum of floating point numbers that falls just short of a whole tick in it.
        return float(int(self.clock.monotonic() - self._start_s + TICK_S / 8))

    def _do_due(self, to_do: list[Step]) -> list[Step]:
        """Perform the steps whose time has come, up to the first expectation."""
        while to_do and to_do[0].expect is None and to_do[0].at_s <= self._t_s:
            step, *to_do = to_do
            try:
                self.host.perform(step)
            except SubletError as error:
                self.problems.append(f"at {step.at_s:g} s: {error}")
            self._tell(_words(step))
        return to_do

    def _check_due(self, to_do: list[Step]) -> list[Step]:
        """Judge the expectations whose time has come; one that may still come true stays."""
        while to_do and (expect := to_do[0].expect) is not None and to_do[0].at_s <= self._t_s:
            step = to_do[0]
            wrong = list(differences(expect, self._view(), list(self.events.values())))
            if wrong and self._t_s < step.at_s + step.within_s:
                break
            self.problems += [f"at {self._t_s:g} s: {difference}" for difference in wrong]
            self.checks += 1
            to_do = to_do[1:]
        return to_do

    def _look(self) -> None:
        """Put down what has changed since the last look."""
        for violation in self.host.kernel.groups.violations():
            if violation not in self._violations:
                self._violations.add(violation)
                self.problems.append(f"at {self._t_s:g} s: {violation}")
        view = self._view()
        before = self.rows[-1].view if self.rows else SimView()
        if (view.share, view.reclaim) != (before.share, before.reclaim):
            self._tell(f"pools: share {_count(view.share)}, reclaim {_count(view.reclaim)} CPUs")
        elif view.reclaimed_millicpu != before.reclaimed_millicpu:
            self._tell("the node reports another amount")
        for key in sorted(set(before.pods) - set(view.pods)):
            self._tell(f"{key} has ended{self._reason(key)}")

    def _reason(self, key: str) -> str:
        """Why a pod has ended, as its status says; nothing for one that was deleted."""
        try:
            return f": {self.host.pods.find(key).status.reason}"
        except Refused:
            return ""

    def _tell(self, what: str, *, event: bool = False) -> None:
        self.rows.append(ReportRow(t_s=self._t_s, what=what, view=self._view(), event=event))

    def _view(self) -> SimView:
        offered: Mapping[str, str] = {}
        if self._cnr.exists():
            offered = json.loads(self._cnr.read_text()).get("status", {}).get("resourceAllocatable", {})
        millis, memory = offered.get(TUTORIAL_RECLAIMED_CPU), offered.get(TUTORIAL_RECLAIMED_MEMORY)
        return SimView(
            share=self._cpus("shared_cores"),
            reclaim=self._cpus("reclaimed_cores"),
            reclaimed_millicpu=None if millis is None else parse_units(millis),
            reclaimed_memory=None if memory is None else parse_units(memory),
            pods=tuple(self.host.running()),
        )

    def _cpus(self, qos: QosClass) -> str:
        return str(self._cgroups.read(class_group(qos), Knob.CPUS) or "").strip()

    def _take_event(self, received: Received) -> None:
        event = read_event(received.subject, received.headers, received.data)
        if not isinstance(event, RefusedMessage) and event.event_id not in self.events:
            self.events[event.event_id] = event
            self._tell(f"{event.phase} pod/{event.pod}  {event.message or event.detail}".rstrip(), event=True)


def _words(step: Step) -> str:
    parts = [step.say] if step.say else []
    if step.apply:
        parts.append(f"apply {', '.join(map(_name, step.apply))}")
    if step.exec is not None:
        parts.append(f"exec {step.exec.pod}: {' '.join(step.exec.command)}")
    if step.delete is not None:
        parts.append(f"delete {step.delete}")
    if step.configure is not None and not step.say:
        parts.append(f"configure {', '.join(step.configure)}")
    return "; ".join(parts)


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name", "?")) if isinstance(metadata, Mapping) else "?"


def _count(cpus: str) -> int:
    return len(CpuSet.parse(cpus))
