"""A policy to copy: the tenants need what they used most lately, with a margin.

Copy this file to `services/advisor/policies/<name>.py`, change the name at its end, and select it with
`advisor.policy: <name>`. Nothing else needs an edit: the law tests run over every file of this folder at once
(`pytest tests/unit/advisor/test_policy_laws.py`), and `sublet replay FILE --policy canonical --policy <name>` compares
it with the others.

What a policy decides: how many cores the shared and dedicated tenants of one region need, without any reserve, and how
many bytes of memory all of its pods. What it does not: reserves, floors, how fast CPUs are taken, what is offered.
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
    """1. Settings: a type, bounds and a sentence for each. Users set `advisor.policies.<name>.<field>`.

    `mode` is there already: `observe` says what the policy would advise and changes nothing.
    """

    margin: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = 1.5
    """Factor on the most that was used."""
    memory_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 60.0
    """Seconds for which a container's largest usage is remembered."""


State = Mapping[tuple[str, str], tuple[float, float]]
"""2. State: what is remembered from round to round, here by pod UID and container the largest usage and its time.

It is never changed in place: the next round gets what `judge` returns. A policy without a memory has None.
"""


def judge(state: State, view: View, now_s: float, settings: Settings) -> tuple[State, Demand]:
    """3. The decision, a pure function: no clock (`now_s` is given), no file, no bus, no random number.

    Laws that hold for every policy: the order of the containers means nothing; more load never gives tenants less; a
    figure that is None is not known, and a container whose use is not known counts at least what it asked for.
    """
    peaks = {(c.uid, c.name): _peak(state.get((c.uid, c.name)), c, now_s, settings) for c in view.of(*CPU_TENANTS)}
    cores = total_cores(_cores(c, peaks[c.uid, c.name], view, settings) for c in view.of(*CPU_TENANTS))
    unknown = unknown_memory_bytes(view.memory.total_bytes or 0)
    memory_bytes = sum(estimate_bytes(c.qos, c.memory, c.request_bytes, unknown) for c in view.containers)
    # 4. Reasons: the rule that fired and the numbers it used; `sublet explain` shows them.
    why = Reason(rule="most used lately x margin, else request", numbers={"containers": len(peaks), "cores": cores})
    # The state is made of the view's containers alone: one that has ended is forgotten, so the state cannot grow.
    return {key: peak for key, peak in peaks.items() if peak is not None}, Demand(cores, memory_bytes, (why,))


def _peak(
    before: tuple[float, float] | None, container: ContainerView, now_s: float, settings: Settings
) -> tuple[float, float] | None:
    """The largest usage and when it was seen; None while nothing was."""
    usage = container.cpu.usage_cores
    # A peak that has not come back for so long must not hold CPUs for ever.
    lasting = before if before is not None and now_s - before[1] <= settings.memory_s else None
    if usage is None:
        return lasting
    return lasting if lasting is not None and lasting[0] > usage else (usage, now_s)


def _cores(container: ContainerView, peak: tuple[float, float] | None, view: View, settings: Settings) -> float:
    requested = requested_cores(container.request_cores, view.bounds.fallback_cores)
    # Dedicated CPUs are the pod's own, used or not.
    if container.qos == "dedicated_cores":
        return requested
    # Not measured, or measured as doing nothing: it may only not have begun, and counts what it asked for.
    if not container.cpu.usage_cores:
        return max(requested, 0.0 if peak is None else peak[0] * settings.margin)
    return settings.margin * (peak[0] if peak is not None else container.cpu.usage_cores)


# 5. The name is the file's. `start` makes the state before the first round.
POLICY = Policy(name="template", settings=Settings, start=dict, judge=judge)
