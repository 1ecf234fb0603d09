"""Define the settings of metrics."""

from collections import Counter
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.metrics.core.applications import MeasuredApplication
from shared.settings import Settings

NAME = "metrics"
MOST_APPLICATIONS = 16
REST_PERIODS = 1.5
"""A node at rest is sampled once in so many periods: with the default of 2 s, a pass that is two seconds late is still
younger than what advisor and evictor take for fresh."""


class MetricsSettings(Settings):
    """How often the node is measured, and what makes a pass happen earlier."""

    period_s: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    """Longest time between two samples while anything moves."""
    rest_period_s: Annotated[float, Field(ge=0.1, le=60)] | None = None
    """Longest time between two samples once five in a row have said the same, while the kernel's pressure triggers are
    armed, which takes a kernel with PSI. Not set: one and a half of `period_s`. Less than `max_input_age_s` of advisor
    and evictor; `period_s` or less switches it off."""
    probe_s: Annotated[float, Field(ge=0.02, le=10)] = 0.1
    """How often the tripwire reads the tenants' CPU time, free memory and the list of pods."""
    min_gap_s: Annotated[float, Field(ge=0.02, le=10)] = 0.1
    """Shortest time between two passes that the kernel's pressure triggers wake."""
    tenant_step_cores: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] = 0.5
    """Rise of the tenants' CPU usage, in cores above their recent peak, that is worth a pass at once."""
    memory_watch_bytes: Annotated[int, Field(ge=0)] = 1 << 30
    """Free memory below which a pass is worth making at once; set it at or above the evictor's own threshold."""
    host_applications: Annotated[tuple[MeasuredApplication, ...], Field(max_length=MOST_APPLICATIONS)] = ()
    """Applications outside of pods, measured beside pods: `path` is a cgroup below `base` (`CgroupRoot`, or kubelet's
    group `Kubepods`, `KubepodsBurstable`, `KubepodsBesteffort`) that holds no pod; `qos` and `priority` are
    Koordinator's classes: what `koord-batch` and `koord-free` use is not taken off batch resources."""

    @property
    def longest_period_s(self) -> float:
        """The longest time between two samples: that of a node at rest."""
        rest_period_s = REST_PERIODS * self.period_s if self.rest_period_s is None else self.rest_period_s
        return max(self.period_s, rest_period_s)

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        twice = [name for name, number in Counter(one.name for one in self.host_applications).items() if number > 1]
        if twice:
            raise ValueError(f"host_applications: {twice[0]} is named twice; give each a name of its own")
        return self
