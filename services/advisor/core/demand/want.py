"""`wanting` adds what tenants wait for to their need, whichever policy judged it.

A policy may read only use, and use cannot exceed what tenants were given (`core/model/wait`).
"""

from dataclasses import replace

from services.advisor.core.demand.need import tenants_need, used_cores
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import Signs, View
from services.advisor.core.policy import Demand
from shared.contracts.envelope import Reason


def wanting(demand: Demand, view: View) -> Demand:
    """The demand, and at least what the tenants of the view use and wait for now. Nothing waits: the same demand."""
    signs = view.signs
    if not signs.waiting_tasks:
        return demand
    need = tenants_need(view, used_cores)
    least = (need.measured_cores or 0.0) + need.asked_cores
    why = Reasons(lambda: (*demand.why, _reason(least, signs, need.asked_cores)))
    return replace(demand, cores=max(demand.cores, least), why=why)


def _reason(least_cores: float, signs: Signs, asked_cores: float) -> Reason:
    return Reason(
        rule="want: at least use + tasks that waited for a CPU, without those that a quota or the hypervisor held back",
        numbers={
            "least_cores": round(least_cores, 6),
            "waiting_tasks": round(signs.waiting_tasks or 0.0, 6),
            "held_back_tasks": round(signs.waiting_for_others, 6),
            "asked_cores": round(asked_cores, 6),
        },
    )
