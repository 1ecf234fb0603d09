"""The regulator turns a requirement into a size: round, limit the step, clamp
(docs/facts/katalyst-cpu.md#regulator).

Tenants grow at once and shrink slowly: a CPU that is taken too early is missing in the next burst, while one that is
taken too late only costs batch work.
"""

import math
from dataclasses import replace

from services.advisor.core.model.ramp import Even, Ramp, RampLimits


def rounded(required: float, even: Even) -> int:
    """A whole size for a requirement: up, and unless "off" up to an even number, so that no core is split."""
    size = math.ceil(required)
    return size if even == "off" else size + size % 2


def regulated(ramp: Ramp, limits: RampLimits, now_s: float, wanted: int, effective: int | None) -> Ramp:
    """Return the next size: `wanted`, within a step of the current size, inside the clamp.

    `effective` is the current size, None if unknown: the step is then unlimited. With "after_limits" an odd result is
    rounded once more: up, or down if up would leave the clamp.
    """
    size = wanted if effective is None else _stepped(ramp, limits, now_s, wanted, effective)
    # After the step: a machine that has lost CPUs must not wait for a slow ramp.
    size = min(max(size, limits.lower), limits.upper)
    if limits.even == "after_limits" and size % 2:
        size = next((even for even in (size + 1, size - 1) if limits.lower <= even <= limits.upper), size)
    # The same object: no step, and the time of the last one down stays.
    if size == ramp.size:
        return ramp
    if size < ramp.size:
        # The longer wait continues only if the last step down was reversed; otherwise the usual wait applies again.
        return Ramp(size, now_s, ramp.wait_s if ramp.regretted else 0.0)
    # Already counted, or so late that it is news and no regret.
    if ramp.regretted or not _is_waiting(ramp, limits, now_s):
        return replace(ramp, size=size)
    return Ramp(size, ramp.last_down_s, min(2 * _wait_s(ramp, limits), limits.max_wait_s), regretted=True)


def _stepped(ramp: Ramp, limits: RampLimits, now_s: float, wanted: int, effective: int) -> int:
    if wanted < effective:
        waiting = _is_waiting(ramp, limits, now_s)
        return effective if waiting else max(wanted, effective - limits.max_down_step)
    return wanted if limits.max_up_step is None else min(wanted, effective + limits.max_up_step)


def _wait_s(ramp: Ramp, limits: RampLimits) -> float:
    # Never longer than these limits allow: the wait may come from a policy of another pace.
    return max(limits.down_period_s, min(ramp.wait_s, limits.max_wait_s))


def _is_waiting(ramp: Ramp, limits: RampLimits, now_s: float) -> bool:
    return now_s < ramp.last_down_s + _wait_s(ramp, limits)
