"""From free memory below its threshold to the eviction call, seen from outside, also beside busy neighbours."""

import asyncio
import json
import sys
import time
from pathlib import Path

from bench.rigs.host import dynamic_config, end, pod, sublet
from bench.rigs.processes import busy_neighbours
from bench.rigs.report import Row, p50_p99, progress
from sublet.demo.chain import Chain
from sublet.demo.watch import memory_free_bytes

BREACHES, LOADED_BREACHES = 15, 10
HOG_MIB, AFTER_MIB = 768, 384
TIMEOUT_S = 20.0
STEADY_S, STEADY_MIB = 0.5, 4
MIB = 1 << 20
# Cooling and the caps protect a node from many evictions in a row, which is just what is measured here.
EVICTOR = {"cooling_s": 0.1, "evictions_per_minute": 600, "condition_transition_s": 0}


async def measure(breaches: int = BREACHES, loaded_breaches: int = LOADED_BREACHES) -> list[Row]:
    """Let a batch pod fill memory again and again, then while other processes keep every CPU busy."""
    async with sublet({"evictor": EVICTOR}) as session, Chain.recording(session.nats_url or "", node="bench") as chain:
        config = dynamic_config(session.state_dir)
        quiet = await _series(chain, config, "memory breach to eviction call", "- / 200 ms", range(breaches))
        later = range(breaches, breaches + loaded_breaches)
        with busy_neighbours():
            loaded = await _series(chain, config, "the same beside busy processes of others", "- / 500 ms", later)
    return [quiet, loaded]


async def _series(chain: Chain, config: Path, what: str, target: str, numbers: range) -> Row:
    times: list[float] = []
    never = 0
    for number in numbers:
        progress(f"{what}: breach {number - numbers.start + 1} of {len(numbers)}")
        short, took = await _one(chain, config, f"hog-{number}")
        never += not short
        times += [took] if took is not None else []
    what += ", p50 / p99"
    missed = len(numbers) - never - len(times)
    what += f" ({missed} without a call)" if missed else ""
    what += f" ({never} times free memory did not fall below it)" if never else ""
    return Row(what, p50_p99(times), len(times), target)


async def _one(chain: Chain, config: Path, name: str) -> tuple[bool, float | None]:
    """Whether memory fell short at all, and how long the call then took."""
    threshold = await _steady_free_bytes() - AFTER_MIB * MIB
    evictor = {"plugins": {"memory_pressure": {"minimum_free_bytes": threshold}}}
    config.write_text(json.dumps({"evictor": evictor, "metrics": {"memory_watch_bytes": threshold}}))
    await chain.configured(TIMEOUT_S)
    hog = await pod("reclaimed", name, sys.executable, "-m", "sublet.demo.batch", "memory", str(HOG_MIB), memory="1Gi")
    try:
        breach = await _breach(threshold)
        await chain.succeeded(name, TIMEOUT_S)
    finally:
        await end([hog])
    created = chain.first_s("created", name)
    if breach is None or created is None:
        return breach is not None, None
    return True, max(0.0, created - breach)


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


async def _breach(threshold: int) -> float | None:
    give_up = time.monotonic() + TIMEOUT_S
    while time.monotonic() < give_up:
        if memory_free_bytes() < threshold:
            return time.monotonic()
        await asyncio.sleep(0.002)
    return None
