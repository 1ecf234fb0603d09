"""A request is what a pod asks for beyond its class's pool: CPUs of its own, a NUMA node, a named pool."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from services.qrm.core.placement.dedicated import whole_cpus
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.cpu_binding import NO_BINDING, CpuBinding, bound_cpus, cpu_binding
from shared.core.pods.koord_qos import BINDS_CPUS, QOS_LABEL, priority_class
from shared.core.pods.qos import QOS_LEVEL
from shared.core.pods.qos_annotations import PodQos, pod_qos

Kind = Literal["dedicated", "bound-share", "named-share", "bound-reclaim"]
POOL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""As Kubernetes has the value of a label."""
_BOUND_KINDS: dict[QosClass, Kind] = {
    "dedicated_cores": "dedicated",
    "shared_cores": "bound-share",
    "reclaimed_cores": "bound-reclaim",
}
FIXED_POOLS = (SHARE, RECLAIM, RESERVE, "dedicated")

_NO_CPUS = CpuSet()


@dataclass(frozen=True, slots=True)
class CpuRequest:
    """One pod's request. `request_cores` is the sum over its containers; `memory_bytes` as well."""

    kind: Kind
    uid: str
    key: str
    request_cores: float
    memory_bytes: int
    exclusive: bool = False
    evenly: bool = False
    whole_cores: bool = False
    numa_number: int | None = None
    numa_ids: tuple[int, ...] = ()
    pool: str = SHARE
    binding: CpuBinding = NO_BINDING
    """How an LSE or LSR pod wants its CPUs."""
    bound_cpus: CpuSet = _NO_CPUS
    """The CPUs that a scheduler has bound an LSE or LSR pod to."""
    asked_cores: float | None = None
    """What its containers request, if `request_cores` is its share of the advice."""

    @property
    def asked(self) -> float:
        """Return what its containers request, whatever was advised."""
        return self.request_cores if self.asked_cores is None else self.asked_cores

    @property
    def cpus(self) -> int:
        """Whole CPUs that hold the request, at least one."""
        return max(1, whole_cpus(self.request_cores))


@lru_cache(maxsize=4096)
def _read(qos: QosClass, annotations: tuple[tuple[str, str], ...]) -> PodQos:
    return pod_qos({**dict(annotations), QOS_LEVEL: qos})


def annotations_of(pod: Pod) -> PodQos:
    """The annotations of one pod, read once, though every pass asks for them.

    The class is what the pod was taken for, whichever dialect named it.
    """
    return _read(pod.qos, tuple(sorted(pod.annotations.items())))


def request_of(pod: Pod, pools: Collection[str] | None = None) -> CpuRequest | str | None:
    """Return what a pod requests; None: nothing beyond its class's pool; a text: why its request cannot be met.

    `pools` are the names that a pod may give for its pool; None: any.
    """
    # They run on the reserve, or everywhere: what they ask for beyond that is not served, and no fault.
    if pod.qos == "system_cores":
        return None
    # Most pods have no annotations at all: the parser is spared for them in every pass.
    if not pod.annotations and not _bound_by_label(pod):
        return _unbound(pod)
    annotated, binding = annotations_of(pod), NO_BINDING
    by_label, pool = _bound_by_label(pod), annotated.cpuset_pool
    kind = _kind_of(pod, pool, bound=annotated.numa_binding or by_label)
    if kind is None:
        return _unbound(pod)
    if by_label:
        binding = cpu_binding(pod.annotations)
    wrong = (_unbindable(pod, binding) if by_label else None) or _misnamed(kind, pool, pools)
    if wrong is not None:
        return wrong
    on = {name: annotated.enhancements.get(name) == "true" for name in _SWITCHES}
    return CpuRequest(
        kind=kind,
        uid=pod.uid,
        key=pod.key,
        request_cores=pod.cpu_request_millis / 1000,
        memory_bytes=pod.memory_request_bytes,
        exclusive=annotated.numa_exclusive,
        evenly=on["distribute_evenly_across_numa"],
        whole_cores=on["full_pcpus_pairing"],
        numa_number=annotated.numa_number if annotated.numa_number > 0 else None,
        numa_ids=tuple(annotated.numa_ids),
        pool=pool or SHARE,
        binding=binding,
        bound_cpus=bound_cpus(pod.annotations) if by_label else _NO_CPUS,
    )


def _kind_of(pod: Pod, pool: str | None, *, bound: bool) -> Kind | None:
    """Return the kind of CPUs that a pod requests beyond its class's pool; None: none, or none that it can have
    unbound."""
    if pod.qos == "shared_cores" and not bound:
        return None if pool in (None, SHARE) else "named-share"
    return _BOUND_KINDS[pod.qos] if bound else None


def _misnamed(kind: Kind, pool: object, pools: Collection[str] | None) -> str | None:
    """Why a pod may not name this pool; None where it may."""
    if pool in FIXED_POOLS[1:]:
        return f"cpuset_pool {pool!r} is not for shared pods; name another, or leave it out"
    if pool in (None, SHARE) or kind not in ("named-share", "bound-share"):
        return None
    # The name becomes part of messages and labels: what Kubernetes takes for a label's value is safe in both.
    if POOL_NAME.fullmatch(str(pool)) and (pools is None or pool in pools):
        return None
    known = ", ".join(sorted(pools or ())) or "none so far"
    return f"cpuset_pool {pool!r} is no pool of this node ({known}); an administrator names it in qrm.pools"


def _bound_by_label(pod: Pod) -> bool:
    """Koordinator's LSE and LSR mean CPUs of one's own; that dialect has no annotation for the binding."""
    return pod.qos == "dedicated_cores" and pod.labels.get(QOS_LABEL) in BINDS_CPUS


def _unbindable(pod: Pod, binding: CpuBinding) -> str | None:
    """Return why an LSE or LSR pod cannot have CPUs of its own (docs/facts/koordinator-cpus.md#who-is-bound); None
    if it can."""
    label, millis = f"label {QOS_LABEL}: {pod.labels.get(QOS_LABEL)}", pod.cpu_request_millis
    if not millis or millis % 1000:
        more = max(1, -(-millis // 1000))
        return f"{label} binds whole CPUs, its containers request {millis}m of cpu; write {more}: until then it is LS"
    priority = priority_class(pod.labels, pod.priority)
    if priority not in (None, "koord-prod"):
        return f"{label} binds CPUs of pods of koord-prod, this one is {priority}: it is LS; write koord-prod, or LS"
    return binding.refusal or None


_SWITCHES = ("distribute_evenly_across_numa", "full_pcpus_pairing")


def _unbound(pod: Pod) -> str | None:
    if pod.qos == "dedicated_cores":
        return "dedicated_cores without numa_binding has no CPUs of its own; set numa_binding in memory_enhancement"
    return None
