"""A sizing policy of the advisor: what it is, what it sees, and the estimates that all policies share.

docs/writing-a-policy.md shows how to write one.
"""

from services.advisor.core.estimate import Figures, requested_cores, total_cores
from services.advisor.core.machine import Bounds, unknown_memory_bytes
from services.advisor.core.memory import NodeMemory, Resident, estimate_bytes
from services.advisor.core.policy import Demand, Policy, PolicySettings
from services.advisor.core.view import CPU_TENANTS, ContainerView, Signs, View
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
