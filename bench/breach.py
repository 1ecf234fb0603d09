"""From free memory below its threshold to the eviction call, seen from outside, also beside busy neighbours."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from bench.rigs.host import dynamic_config, end, pod, sublet
from bench.rigs.processes import busy_neighbours
from bench.rigs.report import Row, p50_p99, progress
from sublet.demo.chain import Chain
from sublet.demo.watch import memory_free_bytes

BREACHES, LOADED_BREACHES = 15, 10
HELD_MIB, TAKEN_MIB, AFTER_MIB = 256, 768, 384
"""What the batch pod holds, what a process of the machine then takes, and after how much of that memory is short."""
TIMEOUT_S = 20.0
STEADY_S, STEADY_MIB = 0.5, 4
MIB = 1 << 20
MEMORY = (sys.executable, "-m", "sublet.demo.batch", "memory")
# Cooling and the caps protect a node from many evictions in a row, which is just what is measured here.
EVICTOR = {"cooling_s": 0.1, "evictions_per_minute": 600, "condition_transition_s": 0}


async def measure(breaches: int = BREACHES, loaded_breaches: int = LOADED_BREACHES) -> list[Row]:
    """Take memory beside a batch pod again and again, then while other processes keep every CPU busy too."""
    async with sublet({"evictor": EVICTOR}) as session, Chain.recording(session.nats_url or "", node="bench") as chain:
        series = Series(chain, dynamic_config(session.state_dir))
        quiet = await series.row("memory breach to eviction call", "- / 200 ms", range(breaches))
        later = range(breaches, breaches + loaded_breaches)
        busy = replace(series, beside=busy_neighbours)
        loaded = await busy.row("the same beside busy processes of others", "- / 500 ms", later)
    return [quiet, loaded]


@dataclass(frozen=True, slots=True)
class Series:
    """Breaches one after the other, each with a batch pod of its own."""

    chain: Chain
    config: Path
    beside: Callable[[], AbstractContextManager[None]] = nullcontext
    """What else happens while memory is taken; a batch pod that starts beside busy processes would hardly get a CPU."""

    async def row(self, what: str, target: str, numbers: range) -> Row:
        """The row of these breaches."""
        times: list[float] = []
        never = 0
        for number in numbers:
            progress(f"{what}: breach {number - numbers.start + 1} of {len(numbers)}")
            short, took = await self._one(f"hog-{number}")
            never += not short
            times += [took] if took is not None else []
        what += ", p50 / p99"
        missed = len(numbers) - never - len(times)
        what += f" ({missed} without a call)" if missed else ""
        what += f" ({never} times free memory did not fall below it)" if never else ""
        return Row(what, p50_p99(times), len(times), target)

    async def _one(self, name: str) -> tuple[bool, float | None]:
        """Whether memory fell short at all, and how long the call then took."""
        before = await _steady_free_bytes()
        hog = await pod("reclaimed", name, *MEMORY, str(HELD_MIB), memory="512Mi")
        try:
            await _below(before - HELD_MIB * MIB // 2)
            threshold = await _steady_free_bytes() - AFTER_MIB * MIB
            evictor = {"plugins": {"memory_pressure": {"minimum_free_bytes": threshold}}}
            settings = {"evictor": evictor, "metrics": {"memory_watch_bytes": threshold}}
            self.config.write_text(json.dumps(settings))
            await self.chain.configured(TIMEOUT_S)
            with self.beside(), memory_taken(TAKEN_MIB):
                breach = await _below(threshold)
                await self.chain.succeeded(name, TIMEOUT_S)
        finally:
            await end([hog])
        created = self.chain.first_s("created", name)
        if breach is None or created is None:
            return breach is not None, None
        return True, max(0.0, created - breach)


@contextmanager
def memory_taken(mib: int) -> Iterator[None]:
    """Let a process of the machine, in no pod, take memory and hold it for as long as the block lasts."""
    taker = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *MEMORY, str(mib)])
    try:
        yield
    finally:
        taker.kill()
        taker.wait()


async def _steady_free_bytes() -> int:
    """Free memory once the last pod's has come back: a threshold from before that would never be crossed.

    Where others take and give memory all the time it never stands still, and is taken as it is in the end.
    """
    now, give_up = memory_free_bytes(), time.monotonic() + TIMEOUT_S
    while time.monotonic() < give_up:
        before = now
        await asyncio.sleep(STEADY_S)
        now = memory_free_bytes()
        if abs(now - before) < STEADY_MIB * MIB:
            break
    return now


async def _below(threshold: int) -> float | None:
    """When free memory was below a threshold (monotonic seconds); None: it did not get there."""
    give_up = time.monotonic() + TIMEOUT_S
    while time.monotonic() < give_up:
        if memory_free_bytes() < threshold:
            return time.monotonic()
        await asyncio.sleep(0.002)
    return None
