"""A pod as the extender sees one: of 250 000 as much as decisions need, and equal asks kept once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from services.central.core.overcommit.fit import ContainerClaim, CpuTaken, cpu_taken
from services.central.core.scheduling.cluster.cnr_taints import Toleration, toleration_of
from services.central.core.scheduling.numa.binding import BindableContainer, BindablePod
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, QosClass
from shared.core.pods.koord_qos import priority_class
from shared.core.pods.qos import lowest_class
from shared.core.pods.qos_annotations import pod_qos
from shared.core.pods.resources import known_amounts, names_reclaimed
from shared.core.text.document import items, mapping
from shared.errors import Refused

MOST_ASKS = 1 << 15
"""Different ones that are kept to be shared: pods of one workload ask alike."""
NAME_CHARACTERS, UID_CHARACTERS = 253, 128
MOST_CONTAINERS = 512
"""Most containers of one pod; the API server's bound on objects permits more, but no pod has them."""
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class ContainerAsk:
    """Requests of one container of a pod that binds to NUMA nodes, by resource name."""

    name: str
    requests: tuple[tuple[str, int], ...]
    init: bool = False
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class PodAsk:
    """Requests and class of a pod. CPU in milli-cores; for reclaimed pods the amounts of the reclaimed resources."""

    qos: QosClass = "shared_cores"
    cpu_request_millis: int = 0
    cpu_limit_millis: int = 0
    memory_request_bytes: int = 0
    memory_limit_bytes: int = 0
    prod: bool = True
    daemonset: bool = False
    own_cpus: int = 0
    """Whole CPUs that it gets for itself where kubelet binds them."""
    numa_exclusive: bool = False
    containers: tuple[ContainerAsk, ...] = ()
    """Only of pods that bind to NUMA nodes."""

    @property
    def reclaimed(self) -> dict[str, int]:
        """Return what it takes of a node's offer."""
        mine = self.qos == "reclaimed_cores"
        return {
            RECLAIMED_CPU: self.cpu_request_millis if mine else 0,
            RECLAIMED_MEMORY: self.memory_request_bytes if mine else 0,
        }

    @property
    def cpu_taken(self) -> CpuTaken:
        """Return what it takes of the node's own CPU."""
        mine = 0 if self.qos == "reclaimed_cores" else self.cpu_request_millis
        return CpuTaken(self.own_cpus, 0 if self.own_cpus else mine)

    @property
    def bindable(self) -> BindablePod | None:
        """As NUMA nodes see it; None: it does not bind."""
        return _bindable(self) if self.containers else None

    @property
    def requests(self) -> dict[str, int]:
        """Return the requests for its estimate, without undeclared resources."""
        return _named(self.cpu_request_millis, self.memory_request_bytes)

    @property
    def limits(self) -> dict[str, int]:
        """Bounds of the estimate; one that it does not name is left out."""
        return _named(self.cpu_limit_millis, self.memory_limit_bytes)


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod, its node, and when it was assigned (seconds since 1970, by the assigner's clock); "" and None: not yet."""

    uid: str
    namespace: str
    name: str
    ask: PodAsk
    node: str = ""
    assigned_at: float | None = None

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodAsked:
    """The pod of a call: what it asks for, what it tolerates, and which scheduler profile it names."""

    seen: PodSeen
    tolerations: tuple[Toleration, ...] = ()
    scheduler: str = ""


def assigned_pod(document: Mapping[str, Any]) -> PodSeen | None:
    """Read a Pod; None while it has no node, and once it has finished."""
    if not (document.get("spec") or {}).get("nodeName"):
        return None
    if (document.get("status") or {}).get("phase") in FINISHED:
        return None
    return pod_seen(document)


def pod_asked(document: Mapping[str, Any]) -> PodAsked:
    """Read the pod of a call, whoever sent it.

    Raises:
        Refused: it has no name, or a map or list has another type.
    """
    spec = mapping(document.get("spec"), "Pod.spec")
    rows = items(spec.get("tolerations"), "Pod.spec.tolerations")
    tolerations = tuple(toleration_of(mapping(row, "Pod.spec.tolerations")) for row in rows)
    return PodAsked(pod_seen(document), tolerations, _text(spec.get("schedulerName")))


def pod_seen(document: Mapping[str, Any]) -> PodSeen:
    """Read a pod with its requests.

    Raises:
        Refused: it has no name, or a map or list has another type.
    """
    meta = mapping(document.get("metadata"), "Pod.metadata")
    spec, status = mapping(document.get("spec"), "Pod.spec"), mapping(document.get("status"), "Pod.status")
    uid, name = _text(meta.get("uid"), UID_CHARACTERS), _text(meta.get("name"))
    if not name:
        raise Refused("Pod.metadata.name: want a name; send a Pod as the API server holds it", reason="malformed")
    namespace = _text(meta.get("namespace")) or "default"
    node = _text(spec.get("nodeName"))
    ask = _kept_once(_ask(meta, spec))
    return PodSeen(uid or f"{namespace}/{name}", namespace, name, ask, node, _assigned_at(status) if node else None)


@lru_cache(maxsize=MOST_ASKS)
def _bindable(ask: PodAsk) -> BindablePod:
    containers = tuple(
        BindableContainer(one.name, dict(one.requests), init=one.init, sidecar=one.sidecar) for one in ask.containers
    )
    return BindablePod(containers, ask.qos, numa_binding=True, numa_exclusive=ask.numa_exclusive)


@lru_cache(maxsize=MOST_ASKS)
def _kept_once(ask: PodAsk) -> PodAsk:
    return ask


def _ask(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> PodAsk:
    annotations, labels = _texts(meta.get("annotations")), _texts(meta.get("labels"))
    running = [mapping(row, "containers") for row in items(spec.get("containers"), "Pod.spec.containers")]
    starting = [mapping(row, "initContainers") for row in items(spec.get("initContainers"), "Pod.spec.initContainers")]
    if len(running) + len(starting) > MOST_CONTAINERS:
        raise Refused(f"Pod.spec: {len(running) + len(starting)} containers, at most {MOST_CONTAINERS} are read",
                      reason="too_large")  # fmt: skip
    asks_reclaimed = any(names_reclaimed(mapping(row.get("resources"), "resources")) for row in (*running, *starting))
    qos = lowest_class(annotations, labels, asks_reclaimed=asks_reclaimed)
    priority = spec.get("priority")
    named = priority_class(labels, priority if isinstance(priority, int) and not isinstance(priority, bool) else None)
    amounts = _effective(running, starting, qos, mid=named == "koord-mid")
    overhead = known_amounts({"requests": spec.get("overhead")}, "")
    bound = pod_qos(annotations) if qos == "dedicated_cores" else None
    owners = items(meta.get("ownerReferences"), "Pod.metadata.ownerReferences")
    return PodAsk(
        qos=qos,
        cpu_request_millis=amounts["cpu_request_millis"] + overhead["cpu_request_millis"],
        cpu_limit_millis=amounts["cpu_limit_millis"],
        memory_request_bytes=amounts["memory_request_bytes"] + overhead["memory_request_bytes"],
        memory_limit_bytes=amounts["memory_limit_bytes"],
        prod=qos != "reclaimed_cores" and named in (None, "koord-prod"),
        daemonset=any(isinstance(one, dict) and one.get("kind") == "DaemonSet" for one in owners),
        own_cpus=_own_cpus(running, starting) if _may_be_guaranteed(amounts, qos) else 0,
        numa_exclusive=bound is not None and bound.numa_exclusive,
        containers=_containers(running, starting) if bound is not None and bound.numa_binding else (),
    )


def _effective(
    running: Sequence[Mapping[str, Any]], starting: Sequence[Mapping[str, Any]], qos: QosClass, *, mid: bool
) -> Counter[str]:
    """Return what all containers take together; sidecars run next to the others, init containers one by one before
    them."""
    beside, largest = Counter[str](), Counter[str]()
    for row in starting:
        own = Counter(known_amounts(mapping(row.get("resources"), "resources"), qos, is_mid=mid))
        if row.get("restartPolicy") == "Always":
            beside += own
            largest |= beside
        else:
            largest |= beside + own
    for row in running:
        beside += Counter(known_amounts(mapping(row.get("resources"), "resources"), qos, is_mid=mid))
    return beside | largest


def _containers(
    running: Sequence[Mapping[str, Any]], starting: Sequence[Mapping[str, Any]]
) -> tuple[ContainerAsk, ...]:
    kept = [(row, False) for row in running] + [(row, True) for row in starting]
    return tuple(
        ContainerAsk(
            _text(row.get("name")),
            tuple(sorted(_requests(row).items())),
            init=init and row.get("restartPolicy") != "Always",
            sidecar=init and row.get("restartPolicy") == "Always",
        )
        for row, init in kept
    )


def _may_be_guaranteed(amounts: Mapping[str, int], qos: QosClass) -> bool:
    """Whether a look at every container is worth it: for most pods it is not."""
    cpu_millis = amounts["cpu_request_millis"]
    return qos != "reclaimed_cores" and bool(cpu_millis) and cpu_millis == amounts["cpu_limit_millis"]


def _own_cpus(running: Sequence[Mapping[str, Any]], starting: Sequence[Mapping[str, Any]]) -> int:
    claims = [_claim(row, init=False) for row in running]
    claims += [_claim(row, init=row.get("restartPolicy") != "Always") for row in starting]
    return cpu_taken(claims).guaranteed_cpus


def _claim(container: Mapping[str, Any], *, init: bool) -> ContainerClaim:
    asked, most = _requests(container), _requests(container, "limits")
    return ContainerClaim(asked.get("cpu"), most.get("cpu"), asked.get("memory"), most.get("memory"), init=init)


def _requests(container: Mapping[str, Any], part: str = "requests") -> dict[str, int]:
    """Every resource that one container asks for; what is no quantity asks for nothing: the API server holds none."""
    given = mapping(mapping(container.get("resources"), "resources").get(part), part)
    found = {}
    for name, quantity in given.items():
        with suppress(ValueError):
            found[name] = max(0, parse_millis(quantity) if name == "cpu" else parse_units(quantity))
    return found


def _named(cpu_millis: int, memory_bytes: int) -> dict[str, int]:
    return {name: amount for name, amount in (("cpu", cpu_millis), ("memory", memory_bytes)) if amount}


def _assigned_at(status: Mapping[str, Any]) -> float | None:
    for row in items(status.get("conditions"), "Pod.status.conditions"):
        if isinstance(row, dict) and row.get("type") == "PodScheduled" and row.get("status") == "True":
            with suppress(ValueError, TypeError, OverflowError):
                return datetime.fromisoformat(row["lastTransitionTime"]).timestamp()
    return None


def _texts(given: object) -> dict[str, str]:
    return {key: value for key, value in mapping(given, "Pod.metadata").items() if isinstance(value, str)}


def _text(given: object, most: int = NAME_CHARACTERS) -> str:
    return given[:most] if isinstance(given, str) else ""
