"""A qrm with its cgroups, its pods and an advisor, for tests in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fake_resctrl import FakeResctrl
from plain_cgroups import PlainCgroups

from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.checkpoint.writer import CheckpointWriter
from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.start_watch import StartWatch
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.offload.loop import OffloadLoop
from services.qrm.adapters.offload.offloader import CgroupOffloader
from services.qrm.adapters.resctrl.bandwidth_loop import BandwidthLoop
from services.qrm.app import QrmApp
from services.qrm.core.writes.plan import WantedSets
from services.qrm.ports import QrmPorts, WatchedLease
from services.qrm.settings import NAME, QrmSettings
from shared import telemetry
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.allocation import Allocation
from shared.contracts.bus.subjects import state_subject
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import Layout
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.core.node_mode import NodeSwitch
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings, section
from shared.wire import Wire

Run = Callable[[Coroutine[Any, Any, Any]], Any]
NODE, BOOT = "n1", "f00d"
MEMORY = 195_257_901_056
SHARED, RECLAIMED = "sublet/shared_cores", "sublet/reclaimed_cores"
FLOOR = {"reclaim": "0,12,24,36", "share": "1-11,13-23,25-35,37-47"}
TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))


class Pods:
    """A PodSource that the test fills."""

    def __init__(self) -> None:
        self.known: list[Pod] = []
        self.broken = False

    def pods(self) -> Sequence[Pod]:
        if self.broken:
            raise Unavailable("the store is away")
        return tuple(self.known)

    def generation(self) -> int:
        if self.broken:
            raise Unavailable("the store is away")
        return len(self.known)


class Lease:
    """The lease as qrm sees it; `left` is what an earlier life left behind."""

    def __init__(self, left: float = 0.0) -> None:
        self.left, self.stopped, self.fell, self.removed = left, False, False, False
        self.renewals: list[tuple[float, dict[str, str]]] = []

    def left_s(self) -> float:
        return self.left

    def renew(self, left_s: float, floor: Mapping[str, WantedSets]) -> None:
        self.renewals.append((left_s, {group: str(want.sets.cpus) for group, want in floor.items()}))

    def ensure_watchdog(self) -> None:
        pass

    def watchdog_fired(self) -> bool:
        fell, self.fell = self.fell, False
        return fell

    def left_behind(self) -> bool:
        return self.left > 0 or bool(self.renewals)

    def remove(self) -> None:
        self.renewals.clear()
        self.left, self.removed = 0.0, True

    async def stop(self) -> None:
        self.stopped = True


class Node:
    """One qrm with its cgroups, its pods, an advisor's voice and the allocations heard."""

    def __init__(self, folder: Path, lease: WatchedLease | None = None, *, plain: PlainCgroups | None = None,
                 topology: Topology | None = None, layout: Layout | None = None,
                 substrate: Literal["host", "kubernetes"] = "host", **qrm: Any) -> None:  # fmt: skip
        self.plain = plain or PlainCgroups(folder / "host")
        if plain is None:
            self.plain.add_classes()
        self.bus, self.clock, self.pods = MemoryBus(), LoopClock(), Pods()
        self.heard: list[Allocation] = []
        self.advisor = Wire(self.bus, self.clock, node=NODE, service="advisor")
        self.topology = topology or TUTORIAL_NODE
        common = CommonSettings(node=NODE, state_dir=folder / "state", substrate=substrate)
        common.state_dir.mkdir(exist_ok=True)
        self.switch = NodeSwitch()
        self.wire = wire = Wire(self.bus, self.clock, node=NODE, service="qrm")
        context = Context(wire, self.clock, common, {"qrm": qrm}, self.switch)
        self.pinned: dict[str, CpuSet] = {}
        self.pins_unread = ""
        machine = HostMachine(self.plain.cgroups, lambda: self.topology, read_pinned=self._read_pinned)
        writer = CgroupWriter(self.plain.cgroups, layout.top if layout else "sublet")
        groups = CgroupGroups(writer, machine, layout, former_store=FormerValuesFile(common.state_dir, BOOT))
        self.processes: dict[int, str] = {}
        self.resctrl = FakeResctrl()
        ports = QrmPorts(
            machine=machine,
            groups=groups,
            pods=self.pods,
            lease=lease,
            offloader=OffloadLoop(CgroupOffloader(self.plain.cgroups), groups.layout, self.clock),
            bandwidth=BandwidthLoop(self.resctrl, lambda: self.topology, self.clock),
            starts=StartWatch(self.plain.cgroups, groups.layout, self.processes.get),
            checkpoints=CheckpointWriter(CheckpointFile(common.state_dir, NODE)),
        )
        self.app = QrmApp(context, ports, section(QrmSettings, context.raw, NAME))
        self._task: asyncio.Task[None] | None = None

    def _read_pinned(self) -> dict[str, CpuSet]:
        if self.pins_unread:
            raise Unavailable(self.pins_unread)
        return self.pinned

    async def __aenter__(self) -> "Node":
        hear = lambda received: self.heard.append(Allocation.decode(received.data))  # noqa: E731
        await self.bus.subscribe(state_subject(Allocation, NODE), hear)
        self._task = asyncio.create_task(self.app.run())
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task
        assert not self._task.done(), "qrm ended by itself"
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.app.close()
        await self.bus.drain()

    def advice(self, share: int = 6, reclaim: int = 42, **fields: Any) -> PoolAdvice:
        pools = (PoolSize(pool="share", cpus=share), PoolSize(pool="reclaim", cpus=reclaim))
        defaults = {
            "policy": "canonical",
            "pools": pools,
            "reclaimed_cpu_millis": 1000 * reclaim,
            "reclaimed_memory_bytes": MEMORY,
        }
        return self.advisor.stamp(PoolAdvice, based_on=("sample/3",), **(defaults | fields))

    async def hear(self, advice: PoolAdvice) -> Allocation:
        """Publish advice, and return the allocation that follows."""
        await self.advisor.publish(advice)
        await asyncio.sleep(0.01)
        return self.last

    @property
    def last(self) -> Allocation:
        return self.heard[-1]

    def sets(self) -> tuple[str, str]:
        return self.plain.get(SHARED), self.plain.get(RECLAIMED)


def pools(allocation: Allocation) -> dict[str, str]:
    return {pool.pool: pool.cpus for pool in allocation.pools}


def conditions(allocation: Allocation) -> dict[str, str]:
    return {condition.type: condition.message for condition in allocation.conditions}


def refusals(reason: str) -> float:
    return float(telemetry.REFUSED.labels("qrm", "advice", reason)._value.get())
