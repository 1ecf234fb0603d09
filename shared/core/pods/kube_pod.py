"""A Pod as the API server holds it, as the node's services see one.

Nothing is refused here: the pod runs, whatever its author wrote. What cannot be understood is taken as the more careful
thing, so a QoS class that nobody knows makes a tenant, an amount that is no quantity counts as not said, and a field
that no pod of ours can hold is left out and named in `Pod.unread`; admission is where such words are refused.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from shared.contracts.pod import Container, KubeQos, Pod, QosClass
from shared.core.cgroups.kubelet_layout import CONFIG_MIRROR, CONFIG_PREFIX, file_hash
from shared.core.pods.containers import described
from shared.core.pods.koord_qos import priority_class
from shared.core.pods.metadata import bounded
from shared.core.pods.qos import CRITICAL_PRIORITY, DEFAULT_CLASS, Fallback, class_of_kube, lowest_class, words_of_both
from shared.core.pods.resources import known_amounts, kube_qos_of, names_reclaimed
from shared.errors import Refused

_PHASES = ("Pending", "Running", "Succeeded", "Failed")
_KUBE_QOS: tuple[KubeQos, ...] = get_args(KubeQos)
# The API server takes any number; an eviction that waits for a day would be none.
_MAX_GRACE_S = 3600.0
_IDENTITY = frozenset({"uid", "namespace", "name"})


def pod_of(
    document: Mapping[str, Any], fallback: Fallback = "shared_cores", first_class: QosClass | None = None
) -> Pod | None:
    """The pod of an API document; None where it has no UID or name that a node could hold, which no API server gives.

    `first_class` is the class that this UID was seen with first: it stands, whatever labels and annotations say since.
    """
    meta, spec, status = (_map(document.get(part)) for part in ("metadata", "spec", "status"))
    written, labels = _texts(meta.get("annotations")), _texts(meta.get("labels"))
    words = bounded(written if _is_mirror(meta, spec) else _of_its_author(written), labels)
    containers, starting = list(_running(spec)), list(_rows(spec.get("initContainers")))
    kube = next((kube for kube in _KUBE_QOS if kube == status.get("qosClass")), None) or _kube_qos(containers)
    default = DEFAULT_CLASS
    if kube is not None and fallback == "kubernetes":
        default = class_of_kube(kube, of_the_cluster=_is_of_the_cluster(meta, spec))
    asks_reclaimed = any(names_reclaimed(_map(row.get("resources"))) for row in (*containers, *starting))
    qos = lowest_class(written, labels, asks_reclaimed=asks_reclaimed, default=default)
    # Labels of a running pod can be patched; requests of reclaimed resources cannot, so these still count.
    if first_class is not None and not asks_reclaimed:
        qos = first_class
    asks_mid = priority_class(labels, _priority(spec)) == "koord-mid"
    ids = {name: row.get("containerID") for row in _statuses(status) if isinstance(name := row.get("name"), str)}
    return _checked(
        {
            "uid": meta.get("uid"),
            "namespace": meta.get("namespace"),
            "name": meta.get("name"),
            "qos": qos,
            "kube_qos": kube,
            "priority": spec.get("priority") or 0,
            **described(
                _containers(containers, qos, ids, is_mid=asks_mid), _containers(starting, qos, ids, is_mid=asks_mid)
            ),
            "overhead_memory_bytes": known_amounts({"requests": spec.get("overhead")}, "")["memory_request_bytes"],
            "annotations": words.annotations,
            "labels": words.labels,
            "unread": (*words.unread, *_torn(written, labels, qos)),
            "grace_s": _grace_s(meta, spec),
            # "Unknown" is a node that does not answer, and this node asks: the pod runs.
            "phase": next((phase for phase in _PHASES if phase == status.get("phase")), "Running"),
            "terminating": bool(meta.get("deletionTimestamp")),
            "owner": _owner(meta),
        }
    )


def without_doubled_files(pods: Sequence[Pod]) -> list[Pod]:
    """The same pods; where two claim one static file, one of them lies, and neither is taken by it."""
    claims = Counter(file_hash(pod) for pod in pods)
    return [
        pod.model_copy(update={"annotations": _of_its_author(pod.annotations)})
        if (claimed := file_hash(pod)) is not None and claims[claimed] > 1
        else pod
        for pod in pods
    ]


def _checked(fields: dict[str, Any]) -> Pod | None:
    """The pod of these fields without those that it cannot hold."""
    try:
        return Pod.model_validate(fields)
    except ValidationError as error:
        bad = {str(one["loc"][0]) for one in error.errors(include_url=False, include_input=False)}
    if bad & _IDENTITY:
        return None
    unread = (*(f"{field}: what stands there is none" for field in sorted(bad)), *fields["unread"])
    return Pod.model_validate({k: v for k, v in fields.items() if k not in bad} | {"unread": unread})


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, dict) else {}


def _rows(given: object) -> Iterable[Mapping[str, Any]]:
    return (row for row in (given if isinstance(given, list) else ()) if isinstance(row, dict))


def _texts(given: object) -> dict[str, str]:
    return {k: v for k, v in _map(given).items() if isinstance(v, str)}


def _running(spec: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The containers that stay: the ordinary ones, and the init containers that are sidecars."""
    yield from _rows(spec.get("containers"))
    yield from (row for row in _rows(spec.get("initContainers")) if row.get("restartPolicy") == "Always")


def _statuses(status: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from _rows(status.get("containerStatuses"))
    yield from _rows(status.get("initContainerStatuses"))


def _containers(
    rows: Iterable[Mapping[str, Any]], qos: QosClass, ids: Mapping[str, Any], *, is_mid: bool
) -> tuple[Container, ...]:
    found = (_container(row, known_amounts(_map(row.get("resources")), qos, is_mid=is_mid), ids) for row in rows)
    return tuple(one for one in found if one is not None)


def _container(row: Mapping[str, Any], amounts: Mapping[str, int], ids: Mapping[str, Any]) -> Container | None:
    """None where it has no name that kubelet would run."""
    fields, identity = {"name": row.get("name"), **amounts}, ids.get(str(row.get("name")))
    # An id of a runtime that is not known costs the container's group, not the container.
    for given in ({**fields, "id": identity}, fields):
        try:
            return Container.model_validate(given)
        except ValidationError:
            continue
    return None


def _priority(spec: Mapping[str, Any]) -> int | None:
    value = spec.get("priority")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _kube_qos(containers: Iterable[Mapping[str, Any]]) -> KubeQos | None:
    try:
        return kube_qos_of([_map(row.get("resources")) for row in containers], "pod")
    except Refused:
        return None


def _grace_s(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> float:
    given = meta.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds"))
    # In Python True is an int.
    if isinstance(given, bool) or not isinstance(given, int | float):
        return 30.0
    return min(_MAX_GRACE_S, max(0.0, given))


def _controller(meta: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((one for one in _rows(meta.get("ownerReferences")) if one.get("controller") is True), None)


def _owner(meta: Mapping[str, Any]) -> str | None:
    """Kind and name of the controller that makes the pod anew."""
    found = _controller(meta)
    return None if found is None else f"{found.get('kind')}/{found.get('name')}"


def _is_of_the_cluster(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether the pod is critical, static, or one of a DaemonSet: what nodes are run by."""
    priority = spec.get("priority")
    critical = isinstance(priority, int) and priority >= CRITICAL_PRIORITY
    return critical or (_controller(meta) or {}).get("kind") in ("DaemonSet", "Node")


def _torn(annotations: Mapping[str, str], labels: Mapping[str, str], qos: QosClass) -> tuple[str, ...]:
    both = words_of_both(annotations, labels)
    return () if both is None else (f"{both}: it is {qos}",)


def _is_mirror(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Whether the document shows a static pod: kubelet makes such a mirror, and its Node is the controller of it.

    Kubelet never runs what has a mirror's annotation, so whoever else writes it gets no container for it.
    """
    owner, node = _controller(meta) or {}, spec.get("nodeName")
    by_node = (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) == ("v1", "Node", node)
    return by_node and node is not None and CONFIG_MIRROR in _texts(meta.get("annotations"))


def _of_its_author(annotations: Mapping[str, str]) -> dict[str, str]:
    """Without the words that only kubelet may say."""
    return {key: text for key, text in annotations.items() if not key.startswith(CONFIG_PREFIX)}
