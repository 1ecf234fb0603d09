"""Which pods' annotations do not say the CPUs that they have (docs/facts/koordinator-cpus.md#resource-status)."""

from dataclasses import dataclass

from shared.contracts.allocation import Allocation
from shared.contracts.sample import NodeSample
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.cpu_binding import STATUS_BYTES, bound_cpus, resource_status
from shared.core.pods.koord_qos import BINDS_CPUS, QOS_LABEL

_DEDICATED = "dedicated"
_IN_FORCE = ("applied", "held", "floor")


@dataclass(frozen=True, slots=True)
class StatusToWrite:
    """One pod, and the text that its annotation should be."""

    namespace: str
    name: str
    uid: str
    text: str


def statuses_to_write(sample: NodeSample, allocation: Allocation) -> tuple[StatusToWrite, ...]:
    """The LSE and LSR pods whose annotation says other CPUs than they have, or none, by name.

    A pod that has no CPUs of its own keeps what stands there: its node may only be about to take it over. Where the
    same CPUs are said in other words these stay, for they are its scheduler's.
    """
    if allocation.mode != "enforce" or allocation.status not in _IN_FORCE:
        return ()
    pods = {reading.pod.uid: reading.pod for reading in sample.pods}
    numas = {numa.numa: CpuSet.parse(numa.cpus) for numa in sample.numas}
    found = []
    for own in allocation.pods:
        pod, cpus = pods.get(own.uid), CpuSet.parse(own.cpus)
        if pod is None or own.pool != _DEDICATED or pod.labels.get(QOS_LABEL) not in BINDS_CPUS or pod.terminating:
            continue
        text = resource_status(cpus, numas)
        if cpus and bound_cpus(pod.annotations) != cpus and len(text) <= STATUS_BYTES:
            found.append(StatusToWrite(own.namespace, own.name, own.uid, text))
    return tuple(sorted(found, key=lambda one: (one.namespace, one.name, one.uid)))
