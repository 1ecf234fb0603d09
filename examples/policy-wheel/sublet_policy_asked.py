"""Tenants keep a part of what they asked for, and what they use: a policy that lives in a wheel of its own."""

from typing import Annotated

from pydantic import Field

from sublet.api.policy import (
    CPU_TENANTS,
    ContainerView,
    Demand,
    Policy,
    PolicySettings,
    Reason,
    View,
    estimate_bytes,
    requested_cores,
    total_cores,
    unknown_memory_bytes,
)


class Settings(PolicySettings):
    """How much of a request is kept."""

    part: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 1.0
    """Part of a shared container's request that counts even if it is not used."""


def judge(_state: None, view: View, _now_s: float, settings: Settings) -> tuple[None, Demand]:
    """The larger of what each container uses and the part of its request."""
    tenants = view.of(*CPU_TENANTS)
    cores = max(
        total_cores(_cores(container, view.bounds.fallback_cores, settings) for container in tenants),
        view.tenants_usage_cores or 0.0,
    )
    unknown = unknown_memory_bytes(view.memory.total_bytes or 0)
    memory_bytes = sum(estimate_bytes(c.qos, c.memory, c.request_bytes, unknown) for c in view.containers)
    why = Reason(rule=f"max(usage, {settings.part:g} x request)", numbers={"containers": len(tenants), "cores": cores})
    return None, Demand(cores, memory_bytes, (why,))


def _cores(container: ContainerView, fallback_cores: float, settings: Settings) -> float:
    # Dedicated CPUs are the pod's own, used or not; and a figure that is missing is not a pod that needs nothing.
    requested, usage = requested_cores(container.request_cores, fallback_cores), container.cpu.usage_cores
    if container.qos == "dedicated_cores" or usage is None:
        return requested
    return max(usage, settings.part * requested)


POLICY = Policy(name="asked", settings=Settings, start=lambda: None, judge=judge)
