"""`HostProbe` collects the facts of this host, or of one whose root it was given."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import V1_CONTROLLERS, Cgroups
from shared.adapters.host.hostfs import lies_in_memory, read_text
from shared.adapters.host.kubelet_tree import ROOTS
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.kubelet_layout import DRIVERS, KubeletLayout
from shared.core.text.kernel_text import meminfo_bytes
from shared.errors import SubletError, Unavailable
from sublet.doctor.finding import Known, Unknown
from sublet.doctor.node import host_processes
from sublet.doctor.node.facts import KUBELET_ROOT, AgentPlace, BusSeen, CpuManager, HostFacts, Kubelet, PolicySeen
from sublet.doctor.node.policy_probe import seen_policy

BUS_WAIT_S = 2.0

T = TypeVar("T")
R = TypeVar("R")


class HostProbe:
    """A node by its files and by its NATS server."""

    def __init__(
        self, host_root: Path, state_dir: Path, nats_url: str, node: str, *, bus_wait_s: float = BUS_WAIT_S
    ) -> None:
        self._host_root, self._state_dir, self._nats_url, self._node = host_root, state_dir, nats_url, node
        self._bus_wait_s = bus_wait_s

    async def facts(self) -> HostFacts:
        """See `NodeProbe`."""
        cgroups = known(lambda: Cgroups(self._host_root))
        running = known(lambda: host_processes.programs(self._host_root))
        kubelet = running if isinstance(running, Unknown) else host_processes.kubelet(self._host_root, running)
        layouts = of(cgroups, _layouts)
        return HostFacts(
            root=os.geteuid() == 0,
            kernel=known(self._kernel),
            pressure=known(self._pressure),
            cgroup_version=of(cgroups, lambda found: found.version),
            controllers=of(cgroups, _controllers),
            read_only=of(cgroups, _read_only),
            cpu_idle=of(cgroups, lambda found: _cpu_idle(found, layouts)),
            pod_controllers=of(cgroups, lambda found: _pod_controllers(found, layouts)),
            kubelet=kubelet,
            layouts=layouts,
            cpu_manager=known(lambda: self._cpu_manager(kubelet)),
            state_dir=str(self._state_dir),
            state_free_bytes=known(self._state_free_bytes),
            state_in_memory=known(lambda: lies_in_memory(self._state_dir)),
            memory_available_bytes=known(self._memory_available_bytes),
            other_agents=of(running, host_processes.other_agents),
            selinux_enforced=known(self._selinux_enforced),
            bus=await self._bus(
                "none" if isinstance(running, Unknown) else host_processes.own_agent(self._host_root, running)
            ),
            policy=await _policy(),
        )

    def _read(self, path: str) -> str:
        text = read_text(f"{self._host_root}/{path}")
        if text is None:
            raise Unavailable(f"{self._host_root / path} is not there")
        return text

    def _kernel(self) -> str:
        return self._read("proc/sys/kernel/osrelease").strip()

    def _pressure(self) -> bool:
        return "some" in (read_text(f"{self._host_root}/proc/pressure/memory") or "")

    def _selinux_enforced(self) -> bool:
        if not (self._host_root / "sys/fs").is_dir():
            raise Unavailable(f"{self._host_root}/sys/fs is not there")
        return (read_text(f"{self._host_root}/sys/fs/selinux/enforce") or "").strip() == "1"

    def _memory_available_bytes(self) -> int:
        found = meminfo_bytes(self._read("proc/meminfo"), ("MemAvailable",))
        if not found:
            raise Unavailable("/proc/meminfo names no MemAvailable")
        return found["MemAvailable"]

    def _state_free_bytes(self) -> int:
        # A folder that is not made yet: its room is that of the nearest one above that is there.
        there = next(folder for folder in (self._state_dir, *self._state_dir.parents) if folder.exists())
        found = os.statvfs(there)
        return found.f_bavail * found.f_frsize

    def _cpu_manager(self, kubelet: Known[Kubelet]) -> CpuManager:
        folder = KUBELET_ROOT if isinstance(kubelet, Unknown) else kubelet.root
        path = f"{folder.lstrip('/')}/cpu_manager_state"
        state = json.loads(self._read(path))
        try:
            return CpuManager(str(state["policyName"]), len(state.get("entries") or {}))
        except (KeyError, TypeError, AttributeError) as error:
            raise Unavailable(f"{self._host_root / path} says nothing that is known: {error!r}") from error

    async def _bus(self, agent: AgentPlace) -> Known[BusSeen]:
        from shared import telemetry
        from shared.adapters.nats.bus import connect
        from shared.core.bus.nats_url import without_secrets

        telemetry.setup_logging("sublet", self._node, as_json=False, level="critical")
        url = without_secrets(self._nats_url)
        try:
            bus = await connect(
                self._nats_url, name=f"doctor/{self._node}", connect_timeout_s=self._bus_wait_s, clock=SystemClock()
            )
        except Unavailable as error:
            refused = error.reason == "login"
            return BusSeen(url, "refused" if refused else "absent", str(error), agent=agent)
        except SubletError as error:
            return Unknown(str(error))
        await bus.drain()
        return BusSeen(url, "reached", agent=agent)


async def _policy() -> Known[PolicySeen]:
    try:
        return await seen_policy()
    except Unavailable as error:
        return Unknown(str(error))


def known(ask: Callable[[], T]) -> Known[T]:
    """What is answered, or why nothing is."""
    try:
        return ask()
    except (OSError, ValueError, SubletError) as error:
        return Unknown(str(error) or type(error).__name__)


def of(fact: Known[T], ask: Callable[[T], R]) -> Known[R]:
    """What follows from a fact; unknown with it."""
    return fact if isinstance(fact, Unknown) else known(lambda: ask(fact))


def _layouts(cgroups: Cgroups) -> tuple[KubeletLayout, ...]:
    every = (KubeletLayout(driver, root) for root in ROOTS for driver in DRIVERS)
    return tuple(layout for layout in every if cgroups.exists(layout.top))


def _controllers(cgroups: Cgroups) -> frozenset[str]:
    if cgroups.version == 2:
        return frozenset((cgroups.text("", "cgroup.controllers") or "").split())
    return frozenset(name for name in V1_CONTROLLERS if (cgroups.root / name / "cgroup.procs").exists())


def _read_only(cgroups: Cgroups) -> tuple[str, ...]:
    folders = [cgroups.folder("", name) for name in cgroups.controllers]
    return tuple(str(folder) for folder in folders if not os.access(folder, os.W_OK))


def _pod_controllers(cgroups: Cgroups, layouts: Known[tuple[KubeletLayout, ...]]) -> frozenset[str]:
    if isinstance(layouts, Unknown) or not layouts:
        raise Unavailable("kubelet has made no groups on this host")
    top = layouts[0].top
    if cgroups.version == 2:
        return frozenset((cgroups.text(top, "cgroup.controllers") or "").split())
    return frozenset(name for name in V1_CONTROLLERS if cgroups.folder(top, name).is_dir())


def _cpu_idle(cgroups: Cgroups, layouts: Known[tuple[KubeletLayout, ...]]) -> bool:
    """The root itself has no such setting: any group below it tells."""
    tops = () if isinstance(layouts, Unknown) else tuple(layout.top for layout in layouts)
    folder = cgroups.folder("", "cpu")
    names = [*tops, *sorted(one.name for one in folder.iterdir() if one.is_dir() and not one.is_symlink())]
    if not names:
        raise Unavailable(f"{folder} has no group in which cpu.idle could be looked for")
    files = (cgroups.file(name, Knob.CPU_IDLE) for name in names)
    return any(file is not None and file.exists() for file in files)
