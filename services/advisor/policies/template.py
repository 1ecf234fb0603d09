"""Policy to copy: tenants need their recent peak use, times a margin.

Copy this file to `services/advisor/policies/<name>.py`, change the name in the last line, and select the policy with
`advisor.policy: <name>`. No other file changes. The law tests run over every file in this folder
(`pytest tests/unit/advisor/test_policy_laws.py`), and `sublet replay FILE --policy canonical --policy <name>` compares
the policies.

A policy decides how many cores the shared and dedicated tenants of one region need, without any reserve, and how many
bytes of memory all pods of the region need. It does not decide reserves, floors, the pace of changes or the offer.
"""

from collections.abc import Mapping
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
    """1. Settings: each field has a type, bounds and a sentence. Users set `advisor.policies.<name>.<field>`.

    The base class provides `mode`: in `observe` the policy reports its advice and changes nothing.
    """

    margin: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = 1.5
    """Factor on the peak use."""
    memory_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 60.0
    """Seconds for which a container's peak use is remembered."""


State = Mapping[tuple[str, str], tuple[float, float]]
"""2. State: what the policy remembers between rounds. Here: the peak use and its time, by pod UID and container.

Never change the state in place: the next round receives the state that `judge` returns. A policy that remembers nothing
uses None.
"""


def judge(state: State, view: View, now_s: float, settings: Settings) -> tuple[State, Demand]:
    """3. The decision is a pure function: no clock (use `now_s`), no file, no bus, no random number.

    Every policy obeys these laws: the order of containers does not matter; more load never gives tenants less; None
    means unknown, and a container of unknown use counts at least its request.
    """
    peaks = {(c.uid, c.name): _peak(state.get((c.uid, c.name)), c, now_s, settings) for c in view.of(*CPU_TENANTS)}
    cores = total_cores(_cores(c, peaks[c.uid, c.name], view, settings) for c in view.of(*CPU_TENANTS))
    unknown = unknown_memory_bytes(view.memory.total_bytes or 0)
    memory_bytes = sum(estimate_bytes(c.qos, c.memory, c.request_bytes, unknown) for c in view.containers)
    # 4. Reasons: the rule that fired and the numbers that it used. `sublet explain` shows them.
    why = Reason(rule="most used lately x margin, else request", numbers={"containers": len(peaks), "cores": cores})
    # The new state holds only containers of this view, so the state does not grow as containers come and go.
    return {key: peak for key, peak in peaks.items() if peak is not None}, Demand(cores, memory_bytes, (why,))


def _peak(
    before: tuple[float, float] | None, container: ContainerView, now_s: float, settings: Settings
) -> tuple[float, float] | None:
    """Return the peak use and its time, or None before the first measurement."""
    usage = container.cpu.usage_cores
    # An old peak that has not recurred must not reserve CPUs forever.
    lasting = before if before is not None and now_s - before[1] <= settings.memory_s else None
    if usage is None:
        return lasting
    return lasting if lasting is not None and lasting[0] > usage else (usage, now_s)


def _cores(container: ContainerView, peak: tuple[float, float] | None, view: View, settings: Settings) -> float:
    requested = requested_cores(container.request_cores, view.bounds.fallback_cores)
    # A dedicated pod owns its CPUs, whether it uses them or not.
    if container.qos == "dedicated_cores":
        return requested
    # Unmeasured or zero use may mean that the container has just started, so its request counts.
    if not container.cpu.usage_cores:
        return max(requested, 0.0 if peak is None else peak[0] * settings.margin)
    return settings.margin * (peak[0] if peak is not None else container.cpu.usage_cores)


# 5. The name is the file name. `start` returns the state for the first round.
POLICY = Policy(name="template", settings=Settings, start=dict, judge=judge)
