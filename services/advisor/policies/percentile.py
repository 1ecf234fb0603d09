"""Tenants need their usual peak, and never less than their current use.

Each shared container counts a high percentile of its own recent past plus a margin, so that CPU which it will soon need
again is not lent out. Its current use and queue always count at least: a new peak reaches the pool in the round that
sees it. The past of a young container says little, so the canonical estimate counts as well, and with
`cold_start: request` also its request. Dedicated containers count their request.

Facts: docs/facts/koordinator.md#histograms-that-forget.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from services.advisor.core.demand.cpu import DEFAULT_RULE, EstimateRule, estimate_cores, requested_cores, total_cores
from services.advisor.core.demand.memory import estimate_bytes
from services.advisor.core.demand.need import need_cores, pool_need_cores
from services.advisor.core.model.machine import unknown_memory_bytes
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.prediction.histogram import CPU_CORES, MEMORY_BYTES
from services.advisor.core.prediction.peak import Peak, Scale
from shared.contracts.envelope import Reason

NAMED_CONTAINERS = 8
"""Most containers named in the reason, as in `canonical`."""
EXACTLY = 100
"""Percent of a container's memory that counts: the measured amount without a margin."""
Percentile = Annotated[float, Field(ge=50, le=100, allow_inf_nan=False)]
HalfLife = Annotated[float, Field(ge=60, le=30 * 86_400, allow_inf_nan=False)]


class PercentileSettings(PolicySettings):
    """Which percentile of the past counts, how long it is remembered, and the margin."""

    cpu_percentile: Percentile = 95.0
    """Percent of the time for which a container's CPU use was at or below the counted value."""
    memory_percentile: Percentile = 98.0
    """Percent of the time for which a container's memory was at or below the counted value."""
    margin_percent: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 10.0
    """Percent added to both percentiles; not to current use."""
    cpu_half_life_s: HalfLife = 12 * 3600.0
    """Seconds after which a sample of CPU use has half its weight. The 95th percentile forgets a level that has
    ended after 4.3 half-lives, the 98th after 5.6."""
    memory_half_life_s: HalfLife = 24 * 3600.0
    """Seconds after which a sample of memory has half its weight."""
    cold_start_s: Annotated[float, Field(ge=0, le=30 * 86_400, allow_inf_nan=False)] = 1800.0
    """Seconds after a container is first seen (or the advisor starts) in which it counts as young."""
    cold_start: Literal["canonical", "request"] = "canonical"
    """Least estimate of a young container: the canonical estimate, or also its request."""

    @property
    def cpu(self) -> Scale:
        """Return how CPU use is counted."""
        return Scale(CPU_CORES, self.cpu_percentile, self.cpu_half_life_s)

    @property
    def memory(self) -> Scale:
        """Return how memory is counted."""
        return Scale(MEMORY_BYTES, self.memory_percentile, self.memory_half_life_s)

    def with_margin(self, peak: Peak) -> float:
        """Return a peak plus the margin; 0 while the peak is unknown."""
        return (peak.value or 0.0) * (1 + self.margin_percent / 100)


@dataclass(frozen=True, slots=True)
class ContainerPast:
    """What is remembered of one container."""

    since_s: float
    cpu: Peak = field(default_factory=Peak)
    memory: Peak = field(default_factory=Peak)


State = Mapping[tuple[str, str], ContainerPast]
"""By pod UID and container name; a container that has ended is forgotten at once."""


def judge(state: State, view: View, now_s: float, settings: PercentileSettings) -> tuple[State, Demand]:
    """Return the sum of the containers' usual peaks, and at least what they and their pool need now."""
    remembered: dict[tuple[str, str], ContainerPast] = {}
    cores: list[tuple[ContainerView, float]] = []
    memory_bytes = young = 0
    scales = settings.cpu, settings.memory
    for container in view.containers:
        if container.qos == "reclaimed_cores":
            continue
        key = (container.uid, container.name)
        past = remembered[key] = _observed(state.get(key) or ContainerPast(now_s), container, now_s, scales)
        is_young = now_s - past.since_s < settings.cold_start_s
        young += is_young
        memory_bytes += _bytes(container, past, is_young, view, settings)
        if container.qos in CPU_TENANTS:
            cores.append((container, _cores(container, past, is_young, view, settings)))
    pool_cores = pool_need_cores(view)
    needed = max(total_cores([estimate for _, estimate in cores]), pool_cores)
    why = Reasons(lambda: [_reason(cores, pool_cores, young, settings)])
    return remembered, Demand(needed, memory_bytes, why)


def _observed(
    past: ContainerPast, container: ContainerView, now_s: float, scales: tuple[Scale, Scale]
) -> ContainerPast:
    """Return the past after this round, on the scales of CPU and memory; a missing figure adds nothing."""
    need, held = need_cores(container.cpu.usage_cores, container.cpu.load1), _held_bytes(container)
    return ContainerPast(
        past.since_s,
        past.cpu if need is None else past.cpu.observe(need, now_s, scales[0]),
        past.memory.observe(held, now_s, scales[1]) if held else past.memory,
    )


def _cores(
    container: ContainerView, past: ContainerPast, young: bool, view: View, settings: PercentileSettings
) -> float:
    fallback = view.bounds.fallback_cores
    # Dedicated CPUs are the pod's own, used or not.
    if container.qos == "dedicated_cores":
        return requested_cores(container.request_cores, fallback)
    need = need_cores(container.cpu.usage_cores, container.cpu.load1)
    floors = [need or 0.0, settings.with_margin(past.cpu)]
    if young or need is None:
        rule = EstimateRule(DEFAULT_RULE.usage_factor, request_fills_gaps=need is None)
        floors.append(estimate_cores(container.cpu, container.request_cores, rule, fallback))
    if young and settings.cold_start == "request":
        floors.append(container.request_cores)
    return max(floors)


def _bytes(container: ContainerView, past: ContainerPast, young: bool, view: View, settings: PercentileSettings) -> int:
    held = _held_bytes(container)
    floors = [held, round(settings.with_margin(past.memory))]
    if young or not held:
        unknown = unknown_memory_bytes(view.memory.total_bytes or 0)
        floors.append(estimate_bytes(container.qos, container.memory, container.request_bytes, unknown))
    if young and settings.cold_start == "request":
        floors.append(container.request_bytes)
    return max(floors)


def _held_bytes(container: ContainerView) -> int:
    """Return the measured memory of a container; 0 if nothing is measured."""
    return estimate_bytes(container.qos, container.memory, 0, 0, EXACTLY)


def _reason(
    estimates: list[tuple[ContainerView, float]], pool_cores: float, young: int, settings: PercentileSettings
) -> Reason:
    """Name the largest estimates, and sum up the rest."""
    cores = [(container.key, estimate) for container, estimate in estimates]
    largest_first = sorted(cores, key=lambda named: (-named[1], named[0]))
    rest = total_cores(estimate for _, estimate in largest_first[NAMED_CONTAINERS:])
    return Reason(
        rule=f"max(usage, load1, p{settings.cpu_percentile:g} + {settings.margin_percent:g} %), canonical while young",
        numbers={
            **{key: round(estimate, 6) for key, estimate in largest_first[:NAMED_CONTAINERS]},
            "containers": len(cores),
            "young": young,
            "all other containers": round(rest, 6),
            "their pool": round(pool_cores, 6),
        },
    )


POLICY = Policy(name="percentile", settings=PercentileSettings, start=dict, judge=judge)
