"""Synthetic tenants of finer resolution than public traces, from which the shipped weights for short steps are
learned.

No public trace in a supported format has the use of containers second by second. Each tenant is drawn from wide ranges:
a base, a slow wave, noise that lasts some seconds, bursts that begin at once and fade, and occasionally a lasting
change of level. Weights learned from these are a start, not the truth: use `sublet record` and train on your own nodes.
The same seed gives the same tenants: only `random.Random.random` is used, which is the same in every Python.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from sublet.replay.traces.frames import Trace
from sublet.replay.traces.tenants import Packing, TenantSeries, nodes_of

NAME = "synthetic"
PERIOD_S = 5.0
LENGTH_S = 7200.0
NODES = 16
PODS_PER_NODE = 12
PACKING = Packing(cpus=48, pods_per_node=PODS_PER_NODE, pod_cores=4.0, step_s=PERIOD_S)


@dataclass(frozen=True, slots=True)
class Habit:
    """How one tenant behaves; cores and seconds."""

    base: float
    wave: float
    wave_s: float
    phase: float
    noise: float
    noise_kept: float
    """Part of one period's noise that is left in the next."""
    burst: float
    burst_every_s: float
    burst_lasts_s: float
    change_every_s: float

    @classmethod
    def draw(cls, chance: Random) -> "Habit":
        """One of the habits that may be."""
        base = 0.1 * 15 ** chance.random()
        return cls(
            base=base,
            wave=base * 0.5 * chance.random(),
            wave_s=600 * 6 ** chance.random(),
            phase=2 * math.pi * chance.random(),
            noise=base * (0.05 + 0.3 * chance.random()),
            noise_kept=0.4 + 0.5 * chance.random(),
            burst=base * 0.5 * 16 ** chance.random(),
            burst_every_s=120 * 15 ** chance.random(),
            burst_lasts_s=5 * 12 ** chance.random(),
            change_every_s=1800 * 4 ** chance.random(),
        )


def series_of(tenant: str, chance: Random) -> TenantSeries:
    """The use of one tenant over the whole time."""
    habit = Habit.draw(chance)
    level, noise, burst = 1.0, 0.0, 0.0
    times, cores = [], []
    for number in range(round(LENGTH_S / PERIOD_S)):
        at_s = number * PERIOD_S
        noise = habit.noise_kept * noise + habit.noise * _bell(chance)
        burst *= math.exp(-PERIOD_S / habit.burst_lasts_s)
        if chance.random() < PERIOD_S / habit.burst_every_s:
            burst = habit.burst * (0.5 + chance.random())
        if chance.random() < PERIOD_S / habit.change_every_s:
            level = 0.5 + 1.5 * chance.random()
        wave = habit.wave * math.sin(habit.phase + 2 * math.pi * at_s / habit.wave_s)
        times.append(at_s)
        cores.append(min(PACKING.pod_cores, max(0.0, level * (habit.base + wave) + noise + burst)))
    return TenantSeries(tenant, times, cores)


def _bell(chance: Random) -> float:
    """Three even draws are near enough to a bell around 0."""
    return chance.random() + chance.random() + chance.random() - 1.5


def synthetic(seed: int, nodes: int = NODES) -> Iterator[Trace]:
    """The traces of so many nodes."""
    chance = Random(seed)  # noqa: S311 - reproducible, not secret
    tenants = [series_of(f"tenant-{number:04}", chance) for number in range(nodes * PODS_PER_NODE)]
    return nodes_of(tenants, PERIOD_S, replace(PACKING, seed=seed), f"{NAME}-{seed}")
