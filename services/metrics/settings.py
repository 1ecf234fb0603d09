"""Settings of metrics."""

from collections import Counter
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.metrics.core.applications import MeasuredApplication
from shared.settings import Settings

NAME = "metrics"
MOST_APPLICATIONS = 16
REST_PERIODS, LONG_REST_PERIODS, LONG_REST_S = 1.5, 2.0, 4.0
"""Factors from `period_s` to the period of a node at rest: the longer one up to so many seconds. With the default of
2 s, a pass that is two seconds late still gives advisor and evictor a fresh sample."""
REST_PROBES = 2.0
"""Factor from `probe_s` to the time between two probes of a node at rest. Probes are most of what an idle node costs;
with the default a rise is then seen within 0.2 s."""


class PerfSettings(Settings):
    """Performance counters of the CPUs: cycles and instructions of pods, from which cycles per instruction (`cpi`) are
    computed. A change applies when the agent restarts."""

    enabled: bool = False
    """Counts with the program perf. It needs CAP_PERFMON, cgroup v2 and a machine with counters; if one is missing, the
    condition CountersUnmeasured names it and there are no figures."""
    window_s: Annotated[float, Field(ge=1, le=30)] = 10.0
    """Length of one counting window."""  # docs/facts/koordinator-isolation.md#cycles-per-instruction
    pause_s: Annotated[float, Field(ge=0, le=30)] = 10.0
    """Time between two windows. A figure is at most one pause and two windows old."""


class MetricsSettings(Settings):
    """How often the node is measured, and what triggers an early pass."""

    period_s: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    """Longest time between two samples while any figure changes."""
    rest_period_s: Annotated[float, Field(ge=0.1, le=60)] | None = None
    """Longest time between two samples after five equal ones, while the kernel's pressure triggers (PSI) are armed.
    Not set: twice `period_s` up to 4 s, or one and a half times `period_s` if that is longer. Keep it below
    `max_input_age_s` of advisor and evictor; `period_s` or less switches it off."""
    probe_s: Annotated[float, Field(ge=0.02, le=10)] = 0.1
    """How often the tripwire reads the tenants' CPU time, free memory and the list of pods."""
    rest_probe_s: Annotated[float, Field(ge=0.02, le=10)] | None = None
    """How often it does so after five equal samples, unless free memory is below `memory_watch_bytes`. Not set: every
    two `probe_s`; `probe_s` or less switches it off."""
    min_gap_s: Annotated[float, Field(ge=0.02, le=10)] = 0.1
    """Shortest time between two passes triggered by the kernel's pressure triggers."""
    tenant_step_cores: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] = 0.5
    """Rise of the tenants' CPU use above its recent peak, in cores, that triggers an early pass."""
    memory_watch_bytes: Annotated[int, Field(ge=0)] = 1 << 30
    """Free memory below which a pass is triggered early; set it at or above the evictor's own threshold."""
    host_applications: Annotated[tuple[MeasuredApplication, ...], Field(max_length=MOST_APPLICATIONS)] = ()
    """Applications outside of pods that are measured as pods are. `path` is a cgroup below `base` (`CgroupRoot`, or
    kubelet's group `Kubepods`, `KubepodsBurstable`, `KubepodsBesteffort`) that holds no pod. `qos` and `priority`
    are Koordinator's classes; what `koord-batch` and `koord-free` use is not subtracted from batch resources."""
    perf: PerfSettings = PerfSettings()
    """Performance counters, the input of cycles per instruction."""

    @property
    def longest_period_s(self) -> float:
        """Return the longest time between two samples, which is that of a node at rest."""
        if self.rest_period_s is not None:
            return max(self.period_s, self.rest_period_s)
        return max(REST_PERIODS * self.period_s, min(LONG_REST_PERIODS * self.period_s, LONG_REST_S))

    @property
    def longest_probe_s(self) -> float:
        """Return the time between two probes of a node at rest."""
        return max(self.probe_s, REST_PROBES * self.probe_s if self.rest_probe_s is None else self.rest_probe_s)

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        twice = [name for name, number in Counter(one.name for one in self.host_applications).items() if number > 1]
        if twice:
            raise ValueError(f"host_applications: {twice[0]} is named twice; give each a name of its own")
        return self
