"""From the moment a tenant wakes to a smaller CPU list of the reclaimed pool, read back from the kernel."""

import asyncio
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.rigs.host import end, pod, sublet
from bench.rigs.processes import busy_neighbours
from bench.rigs.report import Row, p50_p99, progress
from bench.rigs.stages import StageListener, listening, rows
from sublet.demo.watch import TimelineRecorder

SPIKES, LOADED_SPIKES = 60, 30
BUSY_S, RECOVERY_TIMEOUT_S = 1.5, 20.0
SEED = 7
# Only the way back is quicker than by default, so that many spikes fit into a minute; growth has no setting to tune.
SETTINGS: dict[str, object] = {"advisor": {"max_ramp_down_step_cpus": 64, "min_ramp_down_period_s": 0.1}}


async def measure(spikes: int = SPIKES, loaded_spikes: int = LOADED_SPIKES) -> list[Row]:
    """Wake a tenant many times at random moments beside busy batch work, then beside busy processes of others too."""
    chance = random.Random(SEED)
    async with sublet(SETTINGS), listening() as listener:
        watch = TimelineRecorder([])
        batch = [await pod("reclaimed", f"spin-{n}", sys.executable, "-c", "while True: pass") for n in range(3)]
        spinner = Path(__file__).parent / "rigs/spinner.py"
        tenant = await pod("shared", "web", sys.executable, str(spinner), "2", str(BUSY_S), cpu="2", pipes=True)
        watch.start()
        try:
            quiet = [await _one(tenant, watch, listener, chance, n, spikes) for n in range(spikes)]
            with busy_neighbours():
                loaded = [await _one(tenant, watch, listener, chance, n, loaded_spikes) for n in range(loaded_spikes)]
        finally:
            watch.stop()
            await end([*batch, tenant])
    return [
        _row("load spike to changed cpuset", quiet, "100 / 250 ms"),
        *rows([spike.stages_s for spike in quiet if spike.stages_s]),
        _row("the same on a machine that others keep busy", loaded, "- / 500 ms"),
    ]


@dataclass(frozen=True, slots=True)
class _Spike:
    took_s: float | None
    stages_s: list[float] | None


def _row(what: str, spikes: list[_Spike], target: str) -> Row:
    seen = [spike.took_s for spike in spikes if spike.took_s is not None]
    missed = len(spikes) - len(seen)
    return Row(
        f"{what}, p50 / p99" + (f" ({missed} without a change)" if missed else ""),
        p50_p99(seen), len(seen), target,
    )  # fmt: skip


async def _one(
    tenant: asyncio.subprocess.Process,
    watch: TimelineRecorder,
    listener: StageListener,
    chance: random.Random,
    number: int,
    of: int,
) -> _Spike:
    progress(f"spike {number + 1} of {of}")
    await asyncio.sleep(1.0 + chance.random() * 2.0)
    assert tenant.stdin is not None
    assert tenant.stdout is not None
    await _until(lambda: bool(watch.moments) and (watch.moments[-1].reclaim_cpus or 0) > 1)
    before = len(watch.changes)
    tenant.stdin.write(b"\n")
    woke_s = float(await tenant.stdout.readline())
    await asyncio.sleep(BUSY_S + 0.3)
    changed_s = next((c.at_s for c in watch.changes[before:] if c.smaller), None)
    if changed_s is None:
        return _Spike(None, None)
    return _Spike(changed_s - woke_s, listener.stages_s(woke_s, changed_s))


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(RECOVERY_TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.02)
