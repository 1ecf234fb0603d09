"""A sizing policy of the advisor: what it is, what it sees, and the estimates that all policies share.

docs/writing-a-policy.md shows how to write one.
"""

from services.advisor.core.demand.cpu import requested_cores, total_cores
from services.advisor.core.demand.memory import estimate_bytes
from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds, unknown_memory_bytes
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, Signs, View
from services.advisor.core.policy import Demand, Policy, PolicySettings
from shared.contracts.envelope import Reason

__all__ = (
    "CPU_TENANTS",
    "Bounds",
    "ContainerView",
    "Demand",
    "Figures",
    "NodeMemory",
    "Policy",
    "PolicySettings",
    "Reason",
    "Resident",
    "Signs",
    "View",
    "estimate_bytes",
    "requested_cores",
    "total_cores",
    "unknown_memory_bytes",
)
