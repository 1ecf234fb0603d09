"""Each QoS class's group gets the CPUs of its pool and a weight, pods with CPUs of their own get these."""

from collections.abc import Iterable, Mapping, Sequence

from services.qrm.core.placement.dedicated_pods import Owned
from services.qrm.core.writes.plan import Sets, WantedSets
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.knobs import MIN_SHARES, Knob, Write, shares_of_millis
from shared.core.cgroups.layout import POOL_WITHOUT_OWN_CPUS, QOS_CLASSES, Layout, class_group
from shared.core.cpus.cpuset import CpuSet

RECLAIMED: QosClass = "reclaimed_cores"
_YIELDS_FIRST, _TENANT = 0, 1
UNSAID_MILLIS = 1000
"""Weight of a tenant without a CPU request: as much as one process outside Sublet's groups."""

NONE_OWNED: Mapping[str, Owned] = {}


def wanted_groups(
    pools: Mapping[str, CpuSet],
    whole: Sets,
    layout: Layout,
    pods: Sequence[Pod] = (),
    owned: Mapping[str, Owned] = NONE_OWNED,
) -> dict[str, WantedSets]:
    """Return what the top group, the four class groups and, if different, the pods' groups must have; `whole` is
    everything.

    Without a reserve pool, system_cores pods may run on every CPU (docs/facts/katalyst-cpu.md#cpus-at-admission). A
    class with pods that own CPUs is wide enough for all of them, and each of its pods is named. Containers follow their
    pod, and if no pod owns CPUs, pods follow their class. In a layout without class groups every pod is named, and the
    groups above are left to whoever made them.
    """
    wanted = {layout.top: WantedSets(whole)} if layout.classes else {}
    for qos in QOS_CLASSES:
        pool = pools.get(POOL_WITHOUT_OWN_CPUS[qos], whole.cpus)
        rank = _YIELDS_FIRST if qos == RECLAIMED else _TENANT
        members = [pod for pod in pods if pod.qos == qos]
        own = {pod.uid: owned[pod.uid] for pod in members if pod.uid in owned}
        if qos in layout.classes:
            # The class contains its pods, also those with CPUs elsewhere (docs/facts/linux-cgroups.md#cpu-sets).
            together = CpuSet.union((pool, *(one.cpus for one in own.values())))
            wanted[layout.classes[qos]] = WantedSets(Sets(together, whole.mems), rank)
        # Once the class is wider than its pool, pods that merely follow it would run on CPUs that other pods own.
        if own or not layout.classes:
            for pod in members:
                sets = _own_sets(own[pod.uid], whole.mems) if pod.uid in own else Sets(pool, whole.mems)
                wanted[layout.pod_group(pod)] = WantedSets(sets, rank, own=qos == "dedicated_cores" and pod.uid in own)
    return wanted


def _own_sets(own: Owned, mems: CpuSet) -> Sets:
    """Memory follows the binding, where those nodes have any."""
    # A NUMA node may have CPUs and no memory; an empty set is never written.
    return Sets(own.cpus, CpuSet.of(own.numas) & mems or mems)


def pool_of(pod: Pod, owned: Mapping[str, Owned] = NONE_OWNED) -> str:
    """The pool that a pod runs in."""
    return owned[pod.uid].pool if pod.uid in owned else POOL_WITHOUT_OWN_CPUS[pod.qos]


def tenant_millis(pods: Iterable[Pod], cpus: int) -> int:
    """Return the milli-cores that the tenants requested, at most the machine; a tenant without a request counts as
    one core."""
    asked = sum(pod.cpu_request_millis or UNSAID_MILLIS for pod in pods if pod.qos != RECLAIMED)
    return min(asked, 1000 * cpus)


def lowest(group: str, *, has_idle: bool) -> Write:
    """Return the lowest weight: `cpu.idle` if the kernel has it, because shares are refused while that is 1."""
    return Write(group, Knob.CPU_IDLE, 1) if has_idle else Write(group, Knob.CPU_SHARES, MIN_SHARES)


def weights(cpus: int, *, asked_millis: int, has_idle: bool, top: str) -> list[Write]:
    """Give the weight that the tenants requested to the top group, and the lowest weight to reclaimed work.

    Processes outside Sublet's groups compete with the top group as a whole. Without tenants its weight must be minimal,
    or batch work would displace what else runs on the host (docs/facts/linux-cgroups.md#cpu-weight).
    """
    whole = shares_of_millis(1000 * cpus)
    tenants = [class_group(qos, top) for qos in QOS_CLASSES if qos != RECLAIMED]
    of_top = [Write(top, Knob.CPU_SHARES, shares_of_millis(asked_millis)) if asked_millis else
              lowest(top, has_idle=has_idle)]  # fmt: skip
    if asked_millis and has_idle:
        # First: while `cpu.idle` is 1 the kernel refuses shares with EINVAL (docs/facts/linux-cgroups.md#cpu-weight).
        of_top.insert(0, Write(top, Knob.CPU_IDLE, 0))
    return [
        # Before the others: at no moment does reclaimed work weigh as much as a tenant that has just got its weight.
        lowest(class_group(RECLAIMED, top), has_idle=has_idle),
        *(Write(group, Knob.CPU_SHARES, whole) for group in tenants),
        *of_top,
    ]
