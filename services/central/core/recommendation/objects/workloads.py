"""Deployments and their pods, as the rules of recommendation use them.

Nothing is refused here, because the pods run whatever their author wrote. An amount that is no quantity counts as
undeclared.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from services.central.core.recommendation.oom import OomKill
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.core.api_kind import ApiKind

DEPLOYMENTS = ApiKind("apps", "v1", "Deployment", "deployments", namespaced=True)
DESCRIPTOR = "spd.katalyst.kubewharf.io/name"
"""On a pod: its ServiceProfileDescriptor."""
HASH_LABEL = "pod-template-hash"
MAX_CONTAINERS = 64
MAX_AMOUNT = 1 << 60

ResizeState = Literal["", "Deferred", "Infeasible", "InProgress"]
Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ContainerNeeds:
    """Requests of a container: CPU in milli, memory in bytes, without undeclared ones."""

    requests: Amounts
    limits: Amounts
    restarts: frozenset[str] = frozenset()
    """Resources that it applies only with a restart."""


@dataclass(frozen=True, slots=True)
class DeploymentSeen:
    """A Deployment and the containers of its template."""

    namespace: str
    name: str
    containers: Mapping[str, ContainerNeeds]


@dataclass(frozen=True, slots=True)
class WorkloadPod:
    """A pod of a Deployment."""

    uid: str
    namespace: str
    name: str
    workload: str
    node: str
    created: str
    running: bool
    """And not on its way out."""
    containers: Mapping[str, ContainerNeeds]
    in_force: Mapping[str, Amounts] = field(default_factory=dict)
    """Requests that kubelet has put into force, by container; absent where it does not say."""
    kills: tuple[OomKill, ...] = ()
    resize: ResizeState = ""
    """Kubelet's state of a resize that is not done."""
    resize_said: str = ""
    active: bool = True
    """Neither ended nor on its way out."""
    descriptor: str = ""
    """The ServiceProfileDescriptor that it names; "" for none."""

    @property
    def created_s(self) -> float:
        """The moment of its creation; 0, before everything, where that cannot be read."""
        return _seconds(self.created) or 0.0


def deployment_of(document: Mapping[str, Any]) -> DeploymentSeen | None:
    """The containers of a Deployment's template; None without a name."""
    meta = _map(document.get("metadata"))
    namespace, name = meta.get("namespace"), meta.get("name")
    if not isinstance(namespace, str) or not isinstance(name, str):
        return None
    spec = _map(_map(_map(document.get("spec")).get("template")).get("spec"))
    return DeploymentSeen(namespace, name, containers_of(spec))


def pod_of_workload(document: Mapping[str, Any]) -> WorkloadPod | None:
    """A pod of a Deployment; None of any other."""
    meta, spec, status = (_map(document.get(part)) for part in ("metadata", "spec", "status"))
    uid, namespace, name = meta.get("uid"), meta.get("namespace"), meta.get("name")
    workload = _workload(meta)
    if not workload or not isinstance(uid, str) or not isinstance(namespace, str) or not isinstance(name, str):
        return None
    resize, said = _resize(status)
    containers = containers_of(spec)
    phase, stays = status.get("phase"), not meta.get("deletionTimestamp")
    descriptor = _map(meta.get("annotations")).get(DESCRIPTOR)
    return WorkloadPod(
        uid=uid,
        namespace=namespace,
        name=name,
        workload=workload,
        node=str(spec.get("nodeName") or ""),
        created=str(meta.get("creationTimestamp") or ""),
        running=phase == "Running" and stays,
        containers=containers,
        in_force=_in_force(status),
        kills=tuple(_kills(namespace, name, status, containers)),
        resize=resize,
        resize_said=said,
        active=phase not in ("Succeeded", "Failed") and stays,
        descriptor=descriptor if isinstance(descriptor, str) else "",
    )


def containers_of(spec: Mapping[str, Any]) -> dict[str, ContainerNeeds]:
    """The ordinary containers of a pod's spec by name."""
    found = {}
    for row in list(_rows(spec.get("containers")))[:MAX_CONTAINERS]:
        if isinstance(name := row.get("name"), str):
            resources = _map(row.get("resources"))
            restarts = frozenset(
                str(one.get("resourceName"))
                for one in _rows(row.get("resizePolicy"))
                if one.get("restartPolicy") == "RestartContainer"
            )
            found[name] = ContainerNeeds(
                amounts_of(resources.get("requests")), amounts_of(resources.get("limits")), restarts
            )
    return found


def amounts_of(given: object) -> dict[str, int]:
    """CPU in milli and memory in bytes of a map of quantities."""
    found = {}
    for resource, parse in (("cpu", parse_millis), ("memory", parse_units)):
        value = _map(given).get(resource)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            try:
                amount = parse(value)
            except ValueError:
                continue
            if 0 <= amount <= MAX_AMOUNT:
                found[resource] = amount
    return found


def _workload(meta: Mapping[str, Any]) -> str:
    """The Deployment's name: that of the ReplicaSet without the hash that both carry."""
    mark = _map(meta.get("labels")).get(HASH_LABEL)
    for owner in _rows(meta.get("ownerReferences")):
        name = owner.get("name")
        if owner.get("kind") == "ReplicaSet" and isinstance(mark, str) and mark and isinstance(name, str):
            return name.removesuffix(f"-{mark}") if name.endswith(f"-{mark}") else ""
    return ""


def _kills(
    namespace: str, pod: str, status: Mapping[str, Any], containers: Mapping[str, ContainerNeeds]
) -> Iterator[OomKill]:
    for row in list(_rows(status.get("containerStatuses")))[:MAX_CONTAINERS]:
        asked = containers.get(str(row.get("name")))
        for state in (row.get("lastState"), row.get("state")):
            ended = _map(_map(state).get("terminated"))
            finished_s = _seconds(ended.get("finishedAt"))
            if ended.get("reason") == "OOMKilled" and finished_s is not None and asked is not None:
                size_bytes = asked.requests.get("memory", asked.limits.get("memory", 0))
                yield OomKill(namespace, pod, str(row.get("name")), size_bytes, finished_s)


def _in_force(status: Mapping[str, Any]) -> dict[str, Amounts]:
    rows = list(_rows(status.get("containerStatuses")))[:MAX_CONTAINERS]
    return {
        str(row.get("name")): amounts_of(_map(row.get("resources")).get("requests"))
        for row in rows
        if isinstance(row.get("resources"), Mapping)
    }


def _resize(status: Mapping[str, Any]) -> tuple[ResizeState, str]:
    """By the conditions of Kubernetes 1.33 and later (docs/facts/kubernetes.md#resizing-pods)."""
    by_type = {str(one.get("type")): one for one in _rows(status.get("conditions")) if one.get("status") == "True"}
    if pending := by_type.get("PodResizePending"):
        state: ResizeState = "Infeasible" if pending.get("reason") == "Infeasible" else "Deferred"
        return state, str(pending.get("message") or "")[:256]
    if doing := by_type.get("PodResizeInProgress"):
        return "InProgress", str(doing.get("message") or "")[:256]
    return "", ""


def _seconds(given: object) -> float | None:
    """Seconds of the epoch; None for what is no time of the API server."""
    if not isinstance(given, str):
        return None
    try:
        return datetime.fromisoformat(given).timestamp()
    except (ValueError, OverflowError):
        return None


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _rows(given: object) -> Iterable[Mapping[str, Any]]:
    return (row for row in (given if isinstance(given, list) else ()) if isinstance(row, Mapping))
