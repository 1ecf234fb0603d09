"""What `sublet node` costs with 50 pods on this host: CPU share and resident memory at rest, over a minute."""

import asyncio
from pathlib import Path

from bench.rigs.host import end, pod, sublet
from bench.rigs.processes import cpu_seconds, memory_mib
from bench.rigs.report import Row, progress
from shared.adapters.local.pods import LocalPods

PODS = 50
START_TIMEOUT_S, SETTLE_S, SPAN_S = 120.0, 15.0, 60.0


async def _all_run(state_dir: Path, pods: int) -> None:
    """Fifty interpreters take their time to start: what the node does meanwhile is not what it costs at rest."""
    store = LocalPods(state_dir)
    async with asyncio.timeout(START_TIMEOUT_S):
        while sum(pod.phase == "Running" for pod in store.pods()) < pods:
            await asyncio.sleep(0.5)


async def measure(pods: int = PODS) -> list[Row]:
    """Start pods that sleep, wait until the node is calm, then look at the process."""
    async with sublet({}, one_process=True) as session:
        started = []
        for number in range(pods):
            progress(f"pod {number + 1} of {pods}")
            qos = "shared" if number % 2 else "reclaimed"
            started.append(await pod(qos, f"pod-{number}", "sleep", "600", cpu="10m"))
        try:
            progress(f"waiting for {pods} pods to run")
            await _all_run(session.state_dir, pods)
            await asyncio.sleep(SETTLE_S)
            pid = session.children["node"].pid
            if pid is None:
                raise RuntimeError("sublet node is not running")
            before = cpu_seconds(pid)
            await asyncio.sleep(SPAN_S)
            percent = (cpu_seconds(pid) - before) / SPAN_S * 100
            rss, pss = memory_mib(pid)
        finally:
            await end(started)
    return [
        Row(f"CPU of sublet node with {pods} pods", f"{percent:.2f} % of a core", 1, "1 %"),
        Row(f"memory of sublet node with {pods} pods, RSS (PSS)", f"{rss:.0f} ({pss:.0f}) MiB", 1, "80 MB"),
    ]
