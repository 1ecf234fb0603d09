"""Finds the pods whose annotations do not name their CPUs (docs/facts/koordinator-cpus.md#resource-status)."""

from dataclasses import dataclass

from shared.contracts.allocation import Allocation
from shared.contracts.sample import NodeSample
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.cpu_binding import STATUS_BYTES, bound_cpus, resource_status
from shared.core.pods.koord_qos import BINDS_CPUS, QOS_LABEL

_DEDICATED = "dedicated"
_IN_FORCE = ("applied", "partial", "held", "floor")


@dataclass(frozen=True, slots=True)
class StatusToWrite:
    """One pod, and the text that its annotation should be."""

    namespace: str
    name: str
    uid: str
    text: str
    shows: bool = True
    """Whether samples contain the annotation; if it is too long for them, what was written cannot be read back."""


def statuses_to_write(sample: NodeSample, allocation: Allocation) -> tuple[StatusToWrite, ...]:
    """Return the LSE and LSR pods whose annotation names other CPUs than theirs, or none, by name.

    A pod without CPUs of its own keeps its annotation, because its node may only be about to take it over. An
    annotation that names the same CPUs in other words stays, because it is its scheduler's.
    """
    if allocation.mode != "enforce" or allocation.status not in _IN_FORCE:
        return ()
    pods = {reading.pod.uid: reading.pod for reading in sample.pods}
    left_out = {reading.pod.uid for reading in sample.pods if reading.annotations_left_out}
    numas = {numa.numa: CpuSet.parse(numa.cpus) for numa in sample.numas}
    found = []
    for own in allocation.pods:
        pod, cpus = pods.get(own.uid), CpuSet.parse(own.cpus)
        if pod is None or own.pool != _DEDICATED or pod.labels.get(QOS_LABEL) not in BINDS_CPUS or pod.terminating:
            continue
        if not cpus or bound_cpus(pod.annotations) == cpus or not _are_its_own(own.uid, cpus, allocation):
            continue
        if len(text := resource_status(cpus, numas)) <= STATUS_BYTES:
            found.append(StatusToWrite(own.namespace, own.name, own.uid, text, own.uid not in left_out))
    return tuple(sorted(found, key=lambda one: (one.namespace, one.name, one.uid)))


def _are_its_own(uid: str, cpus: CpuSet, allocation: Allocation) -> bool:
    """Where a group could not be written, its pod may have CPUs that others have as well: those are no promise."""
    if allocation.status != "partial":
        return True
    pools = [CpuSet.parse(pool.cpus) for pool in allocation.pools if pool.pool != _DEDICATED]
    others = [CpuSet.parse(pod.cpus) for pod in allocation.pods if pod.pool == _DEDICATED and pod.uid != uid]
    return not CpuSet.union([*pools, *others]) & cpus
