"""From pools to cgroups: what each QoS class's group shall have, and the weights of the groups."""

from collections.abc import Mapping

from services.qrm.core.plan import Sets, Want
from shared.contracts.pod import Pod, QosClass
from shared.core.cpuset import CpuSet
from shared.core.knobs import MIN_SHARES, Knob, Write, shares_of_millis
from shared.core.layout import QOS_CLASSES, RECLAIM, RESERVE, SHARE, class_group

RECLAIMED: QosClass = "reclaimed_cores"
_YIELDS_FIRST, _TENANT = 0, 1

POOL_OF: dict[QosClass, str] = {
    "shared_cores": SHARE,
    "dedicated_cores": SHARE,  # placed with the tenants: CPUs of its own need a binding to NUMA nodes
    "reclaimed_cores": RECLAIM,
    "system_cores": RESERVE,
}


def wanted_groups(pools: Mapping[str, CpuSet], every_cpu: CpuSet, mems: CpuSet, top: str) -> dict[str, Want]:
    """What the top group and the four class groups shall have; pods and containers follow their class.

    Without a reserve pool system_cores pods may run on every CPU (notes/katalyst-node-agent.md section 3.1).
    """
    wanted = {top: Want(Sets(every_cpu, mems))}
    for qos in QOS_CLASSES:
        cpus = pools.get(POOL_OF[qos], every_cpu)
        rank = _YIELDS_FIRST if qos == RECLAIMED else _TENANT
        wanted[class_group(qos, top)] = Want(Sets(cpus, mems), rank)
    return wanted


def pool_of(pod: Pod) -> str:
    """The pool that a pod runs in."""
    return POOL_OF[pod.qos]


def weights(cpus: int, *, has_idle: bool, top: str) -> list[Write]:
    """Weight of the whole machine for the top group and each tenants' class, the lowest there is for reclaimed work.

    `cpu.idle` alone is written where the kernel has it: shares are refused while it is 1 (notes/reliability.md
    section 4a, A7).
    """
    whole = shares_of_millis(1000 * cpus)
    tenants = [top, *(class_group(qos, top) for qos in QOS_CLASSES if qos != RECLAIMED)]
    last = Write(class_group(RECLAIMED, top), *((Knob.CPU_IDLE, 1) if has_idle else (Knob.CPU_SHARES, MIN_SHARES)))
    return [last, *(Write(group, Knob.CPU_SHARES, whole) for group in tenants)]
