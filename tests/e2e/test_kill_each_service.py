"""kill -9 of every service while pods are being evicted: no event is lost or doubled, no cpuset is left wrong."""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from eager_evictor import EAGER
from present import present
from slow_machines import patience_s
from stored_events import event_in

from shared.adapters.clock import SystemClock
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.nats.bus import NatsBus, connect
from shared.contracts.bus.subjects import EVENTS_STREAM, ask_subject, event_filter
from shared.contracts.pod import QosClass
from shared.contracts.services import SERVICES
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import class_group
from shared.core.cpus.cpuset import CpuSet
from shared.errors import SubletError
from shared.settings import CommonSettings
from sublet.commands.audit import audited
from sublet.host.preflight import check_host
from sublet.host.session import Session

KILLS = int(os.environ.get("CHAOS_KILLS", "20"))
PATIENCE_S = patience_s(40.0)
POLL_S = 0.02
# A request of 100 CPUs breaks the over-commit rule on any small machine: the pod is evicted as soon as it is seen.
GREEDY = ["--qos", "reclaimed", "--cpu", "100", "--memory", "16Mi", "--grace-period", "1"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.usefixtures("quick_restarts"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(check_host(CommonSettings())), reason="needs root and writable cgroups"),
]


def run_pod(name: str, env: dict[str, str]) -> "asyncio.Future[asyncio.subprocess.Process]":
    words = [sys.executable, "-m", "sublet", "run", *GREEDY, "--name", name, "--", "sleep", "600"]
    return asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *words, env=env, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
    )


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not await condition():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE_S:.0f} s"
        await asyncio.sleep(POLL_S)


async def ask(bus: NatsBus, service: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(await bus.request(ask_subject("chaos", service)))
        return answer
    except SubletError:
        return {}


async def kernel_agrees(bus: NatsBus) -> bool:
    """The newest allocation is applied, and every set in it is what the kernel has."""
    allocation = (await ask(bus, "qrm")).get("allocation") or {}
    cgroups = Cgroups(Path("/"))
    groups: dict[str, QosClass] = {"share": "shared_cores", "reclaim": "reclaimed_cores"}
    for pool in allocation.get("pools", []):
        if pool["pool"] in groups:
            kernel = str(cgroups.read(class_group(groups[pool["pool"]]), Knob.CPUS))
            if not kernel or CpuSet.parse(kernel) != CpuSet.parse(pool["cpus"]):
                return False
    return allocation.get("status") == "applied"


@pytest.mark.parametrize("service", [*SERVICES, "nats"])
async def test_killing_a_service_at_any_moment_loses_no_event_and_leaves_no_wrong_cpuset(
    service: str, tmp_path: Path
) -> None:
    chance = random.Random(f"kill-{service}")
    state_dir = tmp_path / "state"
    settings = tmp_path / "settings.yaml"
    settings.write_text(json.dumps(EAGER))
    session = Session(
        CommonSettings(state_dir=state_dir, node="chaos"),
        nats_port=0,
        say=lambda _line: None,
        extra_env={"SUBLET_CONFIG": str(settings)},
    )
    env = {**os.environ, "SUBLET_STATE_DIR": str(state_dir)}
    await session.start()
    bus = await connect(session.nats_url or "", name="chaos", connect_timeout_s=10.0, clock=SystemClock())
    try:
        child = present(session.server) if service == "nats" else session.children[service]
        for number in range(KILLS):
            pod = await run_pod(f"greedy-{number}", env)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(pod.wait(), chance.uniform(0.2, 1.6))
            victim = child.pid
            if victim is not None:
                os.kill(victim, signal.SIGKILL)
            await asyncio.wait_for(pod.communicate(), PATIENCE_S)
            assert pod.returncode == 128 + signal.SIGTERM, f"pod {number} ended with {pod.returncode}"

            async def back(before: int | None = victim) -> bool:
                return child.pid not in (None, before)

            await until(back, f"{service} runs again")

        async def complete() -> bool:
            try:
                stored = [event_in(one) for one in await bus.replay(EVENTS_STREAM, event_filter())]
            except SubletError:  # not connected again yet
                return False
            phases = Counter(e.phase for e in stored if e.pod.startswith("greedy-"))
            return phases["succeeded"] >= KILLS

        await until(complete, "every eviction has its last event in the stream")
        stored = [event_in(one) for one in await bus.replay(EVENTS_STREAM, event_filter())]
        assert (await audited(bus, state_dir)).faults == ()
        by_pod: dict[str, Counter[str]] = {}
        for event in stored:
            by_pod.setdefault(event.pod_uid, Counter())[event.phase] += 1
        assert len(by_pod) == KILLS
        for uid, phases in by_pod.items():
            assert phases == {"intended": 1, "created": 1, "succeeded": 1}, f"{uid}: {phases}"

        async def settled() -> bool:
            return await kernel_agrees(bus)

        await until(settled, "the kernel's sets are the allocation's")
    finally:
        await bus.drain()
        left = await session.stop()
    assert left == []
