"""A Pod as the API server holds it, as the node's services see one.

Nothing is refused here: the pod runs, whatever its author wrote. What cannot be understood is taken as the more careful
thing, so a QoS class that nobody knows makes a tenant, and an amount that is no quantity counts as not said; admission
is where such words are refused.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from shared.contracts.pod import Container, Pod, QosClass
from shared.core.pod_resources import known_amounts, kube_qos_of
from shared.core.qos import DEFAULT_CLASS, Fallback, class_of_kube, qos_class
from shared.errors import Refused

OUR_ANNOTATIONS = ("katalyst.kubewharf.io/", "koordinator.sh/", "node.koordinator.sh/", "scheduling.koordinator.sh/",
                   "kubernetes.io/config.", "numa.koordinator.sh/")  # fmt: skip
"""Annotations that are kept. Others may be a quarter of a megabyte long, and samples carry every pod."""
_PHASES = {"Pending", "Running", "Succeeded", "Failed"}
_MAX_GRACE_S = 3600.0


def pod_of(document: Mapping[str, Any], fallback: Fallback = "shared_cores") -> Pod | None:
    """The pod of an API document; None where it has no name that a node could hold."""
    meta, spec, status = document.get("metadata") or {}, document.get("spec") or {}, document.get("status") or {}
    annotations = {k: v for k, v in (meta.get("annotations") or {}).items() if k.startswith(OUR_ANNOTATIONS)}
    labels = dict(meta.get("labels") or {})
    containers = list(_running(spec))
    kube = status.get("qosClass") or _kube_qos(containers)
    qos = _qos(annotations, labels, class_of_kube(kube) if kube and fallback == "kubernetes" else DEFAULT_CLASS)
    ids = {row.get("name"): row.get("containerID", "") for row in _statuses(status)}
    phase = status.get("phase")
    try:
        return Pod(
            uid=meta["uid"],
            namespace=meta["namespace"],
            name=meta["name"],
            qos=qos,
            kube_qos=kube,
            priority=spec.get("priority") or 0,
            containers=_containers(containers, qos, ids),
            init_containers=_containers(spec.get("initContainers") or (), qos, ids),
            overhead_memory_bytes=known_amounts({"requests": spec.get("overhead")}, "")["memory_request_bytes"],
            annotations=annotations,
            labels=labels,
            grace_s=_grace_s(meta, spec),
            phase=phase if phase in _PHASES else "Running",
            terminating=bool(meta.get("deletionTimestamp")),
            owner=_owner(meta),
        )
    except (KeyError, ValidationError):
        return None


def _running(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The containers that stay: the ordinary ones, and the init containers that are sidecars."""
    yield from spec.get("containers") or ()
    yield from (row for row in spec.get("initContainers") or () if row.get("restartPolicy") == "Always")


def _statuses(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from status.get("containerStatuses") or ()
    yield from status.get("initContainerStatuses") or ()


def _containers(rows: Iterable[Mapping[str, Any]], qos: QosClass, ids: Mapping[Any, str]) -> tuple[Container, ...]:
    return tuple(_container(row, qos, ids.get(row.get("name"), "")) for row in rows)


def _container(row: Mapping[str, Any], qos: QosClass, identity: str) -> Container:
    amounts = known_amounts(row.get("resources") or {}, qos)
    try:
        return Container(name=row["name"], id=identity, **amounts)
    except ValidationError:
        return Container(name=row["name"], **amounts)


def _qos(annotations: Mapping[str, str], labels: Mapping[str, str], default: QosClass) -> QosClass:
    try:
        return qos_class(annotations, labels=labels, default=default)
    except Refused:
        return DEFAULT_CLASS


def _kube_qos(containers: Iterable[Mapping[str, Any]]) -> Any:
    try:
        return kube_qos_of([row.get("resources") or {} for row in containers], "pod")
    except Refused:
        return None


def _grace_s(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> float:
    given = meta.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    return 30.0 if given is None else min(_MAX_GRACE_S, max(0.0, float(given)))


def _owner(meta: Mapping[str, Any]) -> str | None:
    """Kind and name of the controller that makes the pod anew."""
    for reference in meta.get("ownerReferences") or ():
        if reference.get("controller"):
            return f"{reference.get('kind')}/{reference.get('name')}"
    return None
