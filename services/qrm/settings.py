"""Settings of qrm."""

from typing import Annotated

from pydantic import Field

from services.qrm.core.placement import Order
from shared.contracts.advice import Mode
from shared.core.layout import ROOT
from shared.settings import Settings

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class QrmSettings(Settings):
    """How qrm places and writes."""

    mode: Mode = "enforce"
    """observe: look only; dry-run: plan and say so; enforce: write. The weaker of this and the advice's mode counts."""
    order: Order = "reclaim-first"
    """Which pool takes its CPUs first (notes/katalyst-node-agent.md section 1.2)."""
    lease_s: Seconds = 10.0
    """Without fresh advice for so long the reclaimed pool falls to its floor, also when qrm is dead."""
    period_s: Seconds = 3.0
    """How often the classes are verified and the allocation is published again when no advice comes."""
    verify_s: Seconds = 10.0
    """How often every pod's group is read back when nothing changes; the classes above them are at every pass."""
    ramp_up_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    """How long a new shared pod may use the reclaimed pool's CPUs as well (30 s in the seeds' system, where the shared
    pool grows late). 0: not at all, for here it grows as soon as the pod needs it."""
    poll_s: Seconds = 0.5
    """How often is looked for new pods, and for the end of the lease."""
    memory_migrate: bool = False
    """Whether the pages of a pod follow when it is bound to NUMA nodes (cgroup v1; on v2 the kernel always moves them).
    Moving takes the time of copying them, and the pod waits meanwhile."""
    burst_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    """How much of its quota a tenant's container may save up and overdraw later, unless its pod says otherwise."""
    keeper: bool = True
    """Whether a process of its own watches the lease; the simulator goes without."""
    top_group: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,62}$")] = ROOT
    """Name of the cgroup that holds all of Sublet's; read once, at the start."""
