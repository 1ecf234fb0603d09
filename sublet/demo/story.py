"""The story on this machine's own cgroups: service alone, beside unmanaged batch, beside batch under Sublet."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import ROOT, class_group
from shared.core.cpus.cpuset import CpuSet
from shared.settings import CommonSettings
from sublet.demo.case import DemoCase, measure
from sublet.demo.chain import Chain
from sublet.demo.load import RequestLoad, wait_listening
from sublet.demo.watch import memory_free_bytes
from sublet.host.session import Session

BATCH_WORKERS = 4
WARM_UP_S = 2.0
HOG_MIB, PRESSURE_AFTER_MIB = 1536, 768
EVICTION_TIMEOUT_S = 25.0
WIDE_TIMEOUT_S = 25.0
LIGHT_PER_S = 5.0
"""Requests that the service gets before it is measured. Of an idle one the advisor knows nothing: it may only not have
begun, so what it asked for counts, and the reclaimed pool stays narrow."""
# By default the tenants' pool gives CPUs back after 30 s of calm; the demo has no time to watch that.
QUICK_WAY_BACK = {"SUBLET_ADVISOR__MIN_RAMP_DOWN_PERIOD_S": "3"}
MIB = 1 << 20

Calm = Callable[[], bool]


@dataclass
class DemoStory:
    """What happened; `faults` says what of the story did not."""

    cases: list[DemoCase] = field(default_factory=list)
    chain: list[dict[str, Any]] = field(default_factory=list)
    breach_to_call_s: float | None = None
    services: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


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


def _reclaimed_pool_is_wide() -> bool:
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


async def play(state_dir: Path, say: Callable[[str], None]) -> DemoStory:
    """Run the three cases, then the eviction; about 75 s."""
    story, env = DemoStory(), dict(os.environ)
    port = free_port()
    counters = [state_dir.parent / f"batch-{n}.units" for n in range(BATCH_WORKERS)]
    service = _python("sublet.demo.service", str(port))
    batch = [_python("sublet.demo.batch", "cpu", str(counter)) for counter in counters]

    async def one(
        case: DemoCase, commands: Sequence[Sequence[str]], units: Sequence[Path], calm: Calm = _always
    ) -> None:
        say(case.title)
        story.cases.append(case)
        async with processes(commands, env):
            await wait_listening(port, 20.0)
            async with _light_load(port):
                await asyncio.sleep(WARM_UP_S)
                if await _until(calm, WIDE_TIMEOUT_S) is None:
                    story.faults.append(f"the reclaimed pool did not widen within {WIDE_TIMEOUT_S:g} s of light load")
            await measure(case, port, units, calm)

    await one(DemoCase("alone", "1/3  the service alone"), [service], [])
    await one(DemoCase("unmanaged", "2/3  with unmanaged batch work"), [service, *batch], counters)
    for counter in counters:
        counter.unlink(missing_ok=True)

    common = CommonSettings(state_dir=state_dir, node="demo")
    config = state_dir / "config.yaml"
    session = Session(common, nats_port=0, forget=True, say=lambda line: say(f"     {line}"),
                      extra_env={"SUBLET_CENTRAL__CONFIG_FILE": str(config), **QUICK_WAY_BACK})  # fmt: skip
    await session.start()
    env["SUBLET_STATE_DIR"] = str(state_dir)
    try:
        async with Chain.recording(session.nats_url or "", node="demo") as chain:
            pods = [_pod("reclaimed", f"batch-{n}", "250m", "256Mi", command) for n, command in enumerate(batch)]
            web = _pod("shared", "web", "1", "256Mi", service)
            case = DemoCase("sublet", "3/3  with batch work under Sublet")
            await one(case, [web, *pods], counters, _reclaimed_pool_is_wide)
            if case.shrink_s is None:
                story.faults.append("the reclaimed pool did not shrink while the load spiked")
            await _eviction(story, chain, config, env, say)
            story.services = {n: {"pid": c.pid, "restarts": c.restarts} for n, c in session.children.items()}
    finally:
        pids = [child.pid for child in session.children.values() if child.pid]
        left = await session.stop()
    story.faults += _leftovers(left, pids)
    return story


async def _eviction(
    story: DemoStory, chain: Chain, config: Path, env: dict[str, str], say: Callable[[str], None]
) -> None:
    """Fill memory with a reclaimed pod until free memory falls below a threshold, and follow what happens."""
    say("     memory: a batch pod takes more than is free")
    threshold = memory_free_bytes() - PRESSURE_AFTER_MIB * MIB
    evictor = {"plugins": {"memory_pressure": {"minimum_free_bytes": threshold}}}
    config.write_text(json.dumps({"evictor": evictor, "metrics": {"memory_watch_bytes": threshold}}))
    await chain.configured(EVICTION_TIMEOUT_S)
    hog = _pod("reclaimed", "hog", "100m", "2Gi", _python("sublet.demo.batch", "memory", str(HOG_MIB)))
    async with processes([hog], env) as started:
        breach = await _until(lambda: memory_free_bytes() < threshold, EVICTION_TIMEOUT_S)
        done = await chain.succeeded("hog", EVICTION_TIMEOUT_S)
        if not done:
            story.faults.append(f"the batch pod was not evicted within {EVICTION_TIMEOUT_S:.0f} s of memory pressure")
        else:
            await asyncio.wait_for(started[0].wait(), EVICTION_TIMEOUT_S)
    created = chain.first_s("created", "hog")
    if breach is not None and created is not None:
        story.breach_to_call_s = max(0.0, created - breach)
    story.chain = chain.rows("hog")
    story.faults += await chain.lost()
    config.write_text("{}")


async def _until(condition: Callable[[], bool], timeout_s: float) -> float | None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return time.monotonic()
        await asyncio.sleep(0.005)
    return None


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
