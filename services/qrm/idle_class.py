"""`as_kernel_can` refuses to share CPUs where the kernel has no idle class to put reclaimed pods into."""

from dataclasses import replace

from services.qrm.conditions import Conditions
from services.qrm.core.active_advice import ActiveAdvice, partitioned, shares_by_choice
from services.qrm.ports import QrmPorts


def as_kernel_can(fresh: ActiveAdvice, ports: QrmPorts, conditions: Conditions) -> ActiveAdvice:
    """Fresh advice, with CPUs side by side where they were to be shared and the kernel has no idle class.

    Raises:
        OSError: the kernel's files cannot be read.
    """
    # A kernel that says nothing is not one that refuses: what it then refuses keeps the groups apart.
    refuses = shares_by_choice(fresh.advice, len(ports.machine.whole.all)) and ports.groups.has_idle_class() is False
    if not refuses:
        conditions.set("NoIdleClass", "")
        return fresh
    words = "CPUs shall be shared, and the kernel has no cpu.idle: they are partitioned; want Linux 5.15 or later"
    conditions.set("NoIdleClass", f"{words}, or advisor.shape partitioned")
    return replace(fresh, advice=partitioned(fresh.advice))
