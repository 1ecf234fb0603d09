"""Ramps say where a size may lie, how fast it may move, and what is remembered of its last steps."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from shared.core.cpus.cpuset import MAX_CPUS

Even = Literal["off", "before_limits", "after_limits"]
MAX_RAMP_DOWN_STEP_CPUS = 2
"""Katalyst's step, as is the period (docs/facts/katalyst-cpu.md#regulator)."""
MIN_RAMP_DOWN_PERIOD_S = 30.0
MAX_RAMP_DOWN_WAIT_S = 120.0
"""Sublet's own bound: without it, a load that swings faster than the period would cost a step up and down with every
swing."""


@dataclass(frozen=True, slots=True)
class RampLimits:
    """Where a size may lie and how fast it may move; all amounts in one unit of the caller's choice."""

    lower: int
    upper: int
    even: Even = "off"
    max_up_step: int | None = None
    """None: grow at once by any amount, because tenants do not wait."""
    max_down_step: int = MAX_RAMP_DOWN_STEP_CPUS
    down_period_s: float = MIN_RAMP_DOWN_PERIOD_S
    """Time between two steps down."""
    max_wait_s: float = 0.0
    """A step down that had to be taken back before the next one was due doubles that time, up to this one."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """The current size, and the time of the last reduction. Before the first step: 0, and never.

    `wait_s` is the time to the next step down if it is longer than usual. `regretted` says whether the last step down
    was reversed, so that a load that only swings does not move the size each time.
    """

    size: int = 0
    last_down_s: float = -math.inf
    wait_s: float = 0.0
    regretted: bool = False


@dataclass(frozen=True, slots=True)
class RampPace:
    """How fast the tenants' pools may change, and when sizes are made even; they grow at once unless a step is set."""

    max_down_step_cpus: int = MAX_RAMP_DOWN_STEP_CPUS
    down_period_s: float = MIN_RAMP_DOWN_PERIOD_S
    max_up_step_cpus: int | None = None
    even: Even = "after_limits"
    max_down_wait_s: float = 0.0
    """See `RampLimits.max_wait_s`."""


@lru_cache(maxsize=64)
def followed_at_once(pace: RampPace) -> RampPace:
    """The pace of a policy that owns it: steps of any size, without a wait; when sizes are made even stays."""
    return replace(pace, max_down_step_cpus=MAX_CPUS, down_period_s=0.0, max_down_wait_s=0.0)
