"""Defines an eviction plugin: one file in `services/evictor/plugins` that ends in `PLUGIN = Plugin(...)`.

A plugin says whether there is pressure (`evaluate`) and in which order pods would relieve it (`rank`). It never decides
to evict: confirmation, guards, cooling and rate are the same for all plugins (`confirmation`, `guards` and `choice` in
`services.evictor.core.arbiter`).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from shared.contracts.allocation import Allocation
from shared.contracts.envelope import Reason
from shared.contracts.mode import Mode
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample, PodReading


class PluginSettings(BaseModel):
    """Settings that every plugin has; a plugin's own model extends this one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """Whether the plugin is evaluated at all."""
    mode: Mode = "enforce"
    """observe: only say what it sees. dry-run: go as far as the eviction's dry run. enforce: evict."""
    grace_period_s: Annotated[float, Field(ge=-1, le=3600)] = -1
    """Grace for its victims; -1 leaves the pod's own."""
    met_for_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """How long its pressure must have been there, in every sample, until it acts."""
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """Time after an eviction in which the plugin evicts no pod, if longer than the evictor's own."""


@dataclass(frozen=True, slots=True)
class View:
    """The input of a plugin: one sample, and what is offered to reclaimed pods."""

    t_s: float
    """Monotonic time at which the sample was received."""
    sample: NodeSample
    reclaimed: Mapping[str, int] | None = None
    """Offered reclaimed resources by name, as applied; None when that is missing or stale (never an empty map)."""
    reclaimed_by_numa: Mapping[int, Mapping[str, int]] | None = None
    """The same by NUMA node; None when it is missing, stale, or not reported by NUMA node."""
    allocation: Allocation | None = None
    """Pools and pods with their CPUs, as applied; None when that is missing or stale."""
    evicted_by_window_h: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Evictions of a pod's workload on this node for each of its pods, by pod UID and window in hours; pods for which
    that is unknown are left out."""
    max_gap_s: float = 5.0
    """Two samples further apart than this are not in a row (`evictor.max_input_age_s`)."""

    @property
    def pods(self) -> tuple[PodReading, ...]:
        """Pods that hold resources, ascending by namespace/name and UID."""
        here = (p for p in self.sample.pods if p.pod.phase in ("Pending", "Running"))
        return tuple(sorted(here, key=lambda p: (p.pod.key, p.pod.uid)))


@dataclass(frozen=True, slots=True)
class Pressure:
    """A threshold is met. `observed` and `threshold` are in the unit of the scope."""

    hard: bool
    scope: str
    observed: float
    threshold: float
    condition: str | None = None
    """"<Name>/<Effect>" for the node's conditions and taints."""
    why: Reason = field(default_factory=lambda: Reason(rule="threshold"))
    below: bool = False
    """The pressure is too little of something (free memory): the observed figure must rise to the threshold."""


Silence = Literal["calm", "unknown"]
"""calm: fresh input, threshold not met. unknown: an input is missing or stale, which is neither pressure nor relief."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod whose going would relieve the pressure, and the figures that rank it."""

    pod: Pod
    why: Reason
    relief: float | None = None
    """By how much its going moves what the pressure observes to its threshold, in the same unit; None where that is
    unknown."""


C = TypeVar("C", bound=PluginSettings)
S = TypeVar("S")
P = TypeVar("P", bound=Pressure)


def _nothing_near(_view: View, _settings: Any) -> None:
    """The default of `near`: the plugin does not say how far off its pressure is."""


@dataclass(frozen=True)
class Plugin(Generic[C, S, P]):
    """One detector with its ranking, as functions over its settings C, its memory S and its pressure P."""

    name: str
    """The plugin's name in events."""
    settings: type[C]
    start: Callable[[], S]
    """The memory before the first sample."""
    evaluate: Callable[[S, View, C], tuple[S, P | Silence]]
    """The memory after this sample, and what it shows."""
    rank: Callable[[View, P, C], tuple[Candidate, ...]]
    """Every pod whose going would help, first to go first; a total order that ends in namespace/name."""
    near: Callable[[View, C], P | None] = _nothing_near
    """Return the pressure with the current observation, for `explain`, even if the threshold is not met; None if the
    plugin cannot tell."""


def checked_finding(finding: object) -> Pressure | Silence:
    """The finding of a plugin, if it is one that a plugin may return.

    Raises:
        TypeError: it is neither a pressure nor one of the silences.
        ValueError: its figures are no numbers.
    """
    if isinstance(finding, Pressure):
        # NaN compares false with everything: it would pass each bound that is asked the other way round.
        if not (math.isfinite(finding.observed) and math.isfinite(finding.threshold)):
            raise ValueError(f"observed {finding.observed}, threshold {finding.threshold}: want finite numbers")
        return finding
    if finding == "calm" or finding == "unknown":
        return finding
    raise TypeError(f"evaluate: want a Pressure, 'calm' or 'unknown', got {finding!r}")


def checked_ranking(ranking: Iterable[object], view: View) -> tuple[Candidate, ...]:
    """A plugin's candidates, if each is a pod of this sample.

    Raises:
        TypeError: one is no candidate.
        ValueError: one is not of this sample.
    """
    here, candidates = {reading.pod.uid for reading in view.pods}, []
    for candidate in ranking:
        if not isinstance(candidate, Candidate):
            raise TypeError(f"rank: want candidates, got {candidate!r}")
        # By UID: a plugin that remembers pods could otherwise name one whose successor has the same name.
        if candidate.pod.uid not in here:
            raise ValueError(f"rank: {candidate.pod.key} ({candidate.pod.uid}) is not in the sample")
        candidates.append(candidate)
    return tuple(candidates)
