"""The stage of the demo on this machine: real processes, real cgroups, and a Sublet of its own."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import ROOT, class_group
from shared.core.cpus.cpuset import CpuSet
from shared.settings import CommonSettings
from sublet.demo.case import Calm, DemoCase, measure
from sublet.demo.chain import Chain
from sublet.demo.load import RequestLoad, wait_listening
from sublet.demo.machine.fit import DemoLoads, MachineReading
from sublet.demo.machine.reading import read_machine
from sublet.demo.story import DemoEviction, StoryBroken
from sublet.demo.watch import memory_free_bytes
from sublet.host.session import Session

BATCH_PODS = 4
WARM_UP_S = 2.0
LISTEN_TIMEOUT_S = 40.0
HOG_MIB, PRESSURE_AFTER_MIB = 1536, 768
EVICTION_TIMEOUT_S = 25.0
WIDE_TIMEOUT_S = 25.0
LIGHT_PER_S = 5.0
"""Requests that the service gets before it is measured. Of an idle one the advisor knows nothing: it may only not have
begun, so what it asked for counts, and the reclaimed pool stays narrow."""
# By default the tenants' pool gives CPUs back after 30 s of calm; the demo has no time to watch that.
QUICK_WAY_BACK = {"SUBLET_ADVISOR__MIN_RAMP_DOWN_PERIOD_S": "3"}
MIB = 1 << 20


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class HostStage:
    """Plays the cases where `SUBLET_STATE_DIR` would lie below `folder`."""

    folder: Path
    say: Callable[[str], None]
    port: int = field(default_factory=free_port)
    _env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    _session: Session | None = None
    _chain: Chain | None = None
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def _counters(self) -> list[Path]:
        return [self.folder / f"batch-{number}.units" for number in range(BATCH_PODS)]

    async def reading(self) -> MachineReading:
        """Look at the machine."""
        return await asyncio.to_thread(read_machine)

    async def measure(self, case: DemoCase, loads: DemoLoads) -> bool:
        """Run one case; False where the reclaimed pool did not get wide before the spike."""
        service = _python("sublet.demo.service", str(self.port), str(loads.work_ms), str(loads.workers))
        each = str(-(-loads.batch_processes // BATCH_PODS))
        batch = [_python("sublet.demo.batch", "cpu", str(counter), each) for counter in self._counters]
        for counter in self._counters:
            counter.unlink(missing_ok=True)
        if case.name == "alone":
            return await self._one(case, loads, [service], _always)
        if case.name == "unmanaged":
            return await self._one(case, loads, [service, *batch], _always)
        pods = [_pod("reclaimed", f"batch-{n}", "250m", "256Mi", command) for n, command in enumerate(batch)]
        web = _pod("shared", "web", "1", "256Mi", service)
        return await self._one(case, loads, [web, *pods], reclaimed_pool_is_wide)

    async def _one(self, case: DemoCase, loads: DemoLoads, commands: Sequence[Sequence[str]], calm: Calm) -> bool:
        async with processes(commands, self._env):
            try:
                await wait_listening(self.port, LISTEN_TIMEOUT_S)
            except TimeoutError as error:
                raise StoryBroken(f"the service did not listen within {LISTEN_TIMEOUT_S:g} s") from error
            async with _light_load(self.port):
                await asyncio.sleep(WARM_UP_S)
                wide = await _until(calm, WIDE_TIMEOUT_S) is not None
            # What did not widen in light load will not in the steady one: then there is nothing to wait for.
            await measure(case, self.port, loads, self._counters, calm if wide else _always)
            return wide

    async def start(self) -> None:
        """Start Sublet and listen to its bus."""
        state_dir = self.folder / "state"
        self._session = Session(
            CommonSettings(state_dir=state_dir, node="demo"),
            nats_port=0,
            forget=True,
            say=lambda line: self.say(f"     {line}"),
            extra_env={"SUBLET_CENTRAL__CONFIG_FILE": str(self._config), **QUICK_WAY_BACK},
        )
        await self._session.start()
        self._env["SUBLET_STATE_DIR"] = str(state_dir)
        recording = Chain.recording(self._session.nats_url or "", node="demo")
        self._chain = await self._open.enter_async_context(recording)

    @property
    def _config(self) -> Path:
        return self.folder / "state/config.yaml"

    async def evict(self) -> DemoEviction:
        """Fill memory with a reclaimed pod until free memory falls below a threshold, and follow what happens."""
        if self._chain is None:
            raise StoryBroken("Sublet does not run")
        chain, found = self._chain, DemoEviction()
        threshold = memory_free_bytes() - PRESSURE_AFTER_MIB * MIB
        evictor = {"plugins": {"memory_pressure": {"minimum_free_bytes": threshold}}}
        self._config.write_text(json.dumps({"evictor": evictor, "metrics": {"memory_watch_bytes": threshold}}))
        await chain.configured(EVICTION_TIMEOUT_S)
        hog = _pod("reclaimed", "hog", "100m", "2Gi", _python("sublet.demo.batch", "memory", str(HOG_MIB)))
        async with processes([hog], self._env) as started:
            breach = await _until(lambda: memory_free_bytes() < threshold, EVICTION_TIMEOUT_S)
            if await chain.succeeded("hog", EVICTION_TIMEOUT_S):
                found.succeeded = await _ended(started[0], EVICTION_TIMEOUT_S)
        created = chain.first_s("created", "hog")
        if breach is not None and created is not None:
            found.breach_to_call_s = max(0.0, created - breach)
        found.chain, found.lost = chain.rows("hog"), await chain.lost()
        self._config.write_text("{}")
        return found

    async def stop(self) -> list[str]:
        """End Sublet; what it left behind."""
        await self._open.aclose()
        if self._session is None:
            return []
        pids = [child.pid for child in self._session.children.values() if child.pid]
        return _leftovers(await self._session.stop(), pids)


@asynccontextmanager
async def processes(
    commands: Sequence[Sequence[str]], env: dict[str, str]
) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Run commands in the background; on leaving, TERM them and wait."""
    started = [
        await asyncio.create_subprocess_exec(*command, env=env, stdin=asyncio.subprocess.DEVNULL)
        for command in commands
    ]
    try:
        yield started
    finally:
        for process in started:
            if process.returncode is None:
                process.terminate()
        await asyncio.gather(*(process.wait() for process in started))


def _always() -> bool:
    """Without Sublet there is no pool to wait for."""
    return True


def reclaimed_pool_is_wide() -> bool:
    """Whether the reclaimed pool is as wide as it gets: only then can a spike be seen to narrow it."""
    text = str(Cgroups(Path("/")).read(class_group("reclaimed_cores"), Knob.CPUS) or "")
    return len(CpuSet.parse(text)) > (os.cpu_count() or 1) // 2


@asynccontextmanager
async def _light_load(port: int) -> AsyncIterator[None]:
    """Send a few requests a second until the end of the block; their answers are not counted."""
    load = RequestLoad(port)
    sending = asyncio.create_task(load.run(LIGHT_PER_S, 10 * WIDE_TIMEOUT_S))
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await load.finish()


def _python(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", *arguments]


def _pod(qos: str, name: str, cpu: str, memory: str, command: Sequence[str]) -> list[str]:
    own = ("--user", str(os.geteuid()))  # what it measures lies in this process's folder, whoever called sudo
    return _python(
        "sublet", "run", *own, "--qos", qos, "--cpu", cpu, "--memory", memory, "--name", name, "--", *command
    )


async def _until(condition: Callable[[], bool], timeout_s: float) -> float | None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return time.monotonic()
        await asyncio.sleep(0.005)
    return None


async def _ended(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(process.wait(), timeout_s)
    except TimeoutError:
        return False
    return True


def _leftovers(left: Sequence[str], pids: Sequence[int]) -> list[str]:
    faults = [f"cgroup {group} was left behind" for group in left]
    cgroups = Cgroups(Path("/"))
    faults += [
        f"cgroup {cgroups.folder(ROOT, controller)} was left behind"
        for controller in cgroups.controllers
        if cgroups.folder(ROOT, controller).exists()
    ]
    faults += [f"process {pid} was left behind" for pid in pids if Path(f"/proc/{pid}").exists()]
    return faults
