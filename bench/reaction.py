"""From the moment a tenant wakes to a smaller CPU list of the reclaimed pool, read back from the kernel."""

import asyncio
import random
import sys
from collections.abc import Callable
from pathlib import Path

from bench.rig import Row, end, p50_p99, pod, progress, sublet
from sublet.demo.watch import Watch

SPIKES = 60
BUSY_S, RECOVERY_TIMEOUT_S = 1.5, 20.0
SEED = 7
# Only the way back is quicker than by default, so that many spikes fit into a minute; growth has no setting to tune.
SETTINGS: dict[str, object] = {"advisor": {"max_ramp_down_step_cpus": 64, "min_ramp_down_period_s": 0.1}}


async def measure(spikes: int = SPIKES) -> list[Row]:
    """Wake a tenant many times at random moments beside busy batch work."""
    chance = random.Random(SEED)
    reactions: list[float] = []
    async with sublet(SETTINGS):
        watch = Watch([])
        batch = [await pod("reclaimed", f"spin-{n}", sys.executable, "-c", "while True: pass") for n in range(3)]
        spinner = Path(__file__).with_name("spinner.py")
        tenant = await pod("shared", "web", sys.executable, str(spinner), "2", str(BUSY_S), cpu="1", pipes=True)
        watch.start()
        try:
            for number in range(spikes):
                progress(f"spike {number + 1} of {spikes}")
                await asyncio.sleep(1.0 + chance.random() * 2.0)
                reactions.append(await _one(tenant, watch))
        finally:
            watch.stop()
            await end([*batch, tenant])
    missed = sum(r == float("inf") for r in reactions)
    seen = [r for r in reactions if r != float("inf")]
    what = "load spike to changed cpuset, p50 / p99" + (f" ({missed} without a change)" if missed else "")
    return [Row(what, p50_p99(seen), len(seen), "300 / 1000 ms")]


async def _one(tenant: asyncio.subprocess.Process, watch: Watch) -> float:
    assert tenant.stdin is not None
    assert tenant.stdout is not None
    await _until(lambda: bool(watch.moments) and (watch.moments[-1].reclaim_cpus or 0) > 1)
    before = len(watch.changes)
    tenant.stdin.write(b"\n")
    started = float(await tenant.stdout.readline())
    await asyncio.sleep(BUSY_S + 0.3)
    return next((c.at_s - started for c in watch.changes[before:] if c.smaller), float("inf"))


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(RECOVERY_TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.02)
