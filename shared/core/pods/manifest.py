"""A Kubernetes Pod document, already read from YAML, as the record of the local runtime.

What a bare host can do is taken; what it cannot is either refused, where leaving it out would change what the pod may
do, or left out and said in a note.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError

from shared.contracts.envelope import MessagePart
from shared.contracts.ids import UID_PATTERN
from shared.contracts.pod import Container, KubeQos, Pod, QosClass
from shared.core.cgroups.kubelet_layout import CONFIG_PREFIX
from shared.core.pods.qos import DEFAULT_CLASS, Fallback, class_of_kube, qos_class
from shared.core.pods.resources import container_amounts, kube_qos_of
from shared.core.pydantic_words import field_faults
from shared.core.text.document import dns_name, integer, items, mapping, refused, text, texts, words
from shared.errors import Refused

MAX_CONTAINERS = 64
DEFAULT_GRACE_S = 30

_POD_KEYS = {"apiVersion", "kind", "metadata", "spec", "status"}
_SPEC_KEYS = {"containers", "priority", "terminationGracePeriodSeconds", "restartPolicy"}
_CONTAINER_KEYS = {"name", "command", "args", "env", "workingDir", "resources"}
# Where the pod runs and how its image gets there is meaningless on one host that runs its own commands.
_WITHOUT_MEANING = {"schedulerName", "imagePullPolicy", "imagePullSecrets", "nodeSelector", "tolerations", "dnsPolicy"}
# Left out, these would give a pod more rights or other steps than its author asked for.
_REFUSED_KEYS = {"securityContext", "initContainers", "envFrom"}


class ContainerRun(MessagePart):
    """What a container runs: the command with its arguments, additions to the environment, the working folder."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str] = {}
    workdir: str = ""


class PodRecord(MessagePart):
    """A pod of the local runtime as it was asked for: identity and amounts, and what its containers run."""

    pod: Pod
    runs: tuple[ContainerRun, ...] = ()


class Manifest(MessagePart):
    """A document that was understood, and notes for the user about what a bare host leaves out."""

    record: PodRecord
    notes: tuple[str, ...] = ()


def read_pods(
    documents: Sequence[object],
    new_uid: Callable[[], str],
    fallback: Fallback = "shared_cores",
    places: Sequence[str] = (),
) -> tuple[Manifest, ...]:
    """The pods of a file, in its order; empty documents are passed over. All are read before anything is returned.

    `fallback` gives the class of a pod that names none, by annotation or label; `places` say where each document
    stands, for a refusal.

    Raises:
        Refused: a document is not a Pod that can run here, or two have one name; names object, value and next step.
    """
    named = zip_longest(documents, places[: len(documents)], fillvalue="")
    manifests = tuple(
        _read_placed(document, new_uid(), fallback, place) for document, place in named if document is not None
    )
    if not manifests:
        raise Refused("no document found: want at least one with kind: Pod", reason="malformed")
    _refuse_twins([manifest.record.pod.key for manifest in manifests], "pod {} stands twice in this file")
    return manifests


def _read_placed(document: object, uid: str, fallback: Fallback, place: str) -> Manifest:
    try:
        return read_pod(document, uid, fallback)
    except Refused as refusal:
        raise Refused(f"{place}: {refusal}" if place else str(refusal), reason=refusal.reason) from None


def read_pod(document: object, uid: str, fallback: Fallback = "shared_cores") -> Manifest:
    """One Pod document as a record with this UID; `fallback` as in `read_pods`.

    Raises:
        Refused: as `read_pods`.
    """
    if not re.fullmatch(UID_PATTERN, uid):
        raise Refused(f"pod UID {uid!r}: want hexadecimal digits and dashes", reason="malformed")
    top = mapping(document, "document")
    if (top.get("kind"), top.get("apiVersion", "v1")) != ("Pod", "v1"):
        raise Refused(f"kind {top.get('kind')!r} of {top.get('apiVersion')!r}: only kind Pod of v1 runs here",
                      reason="kind")  # fmt: skip
    meta = mapping(top.get("metadata"), "metadata")
    if meta.get("name") is None:
        raise refused("metadata.name", "is missing: want a name; generateName needs an API server")
    name = dns_name(meta.get("name"), "metadata.name")
    namespace = dns_name(meta.get("namespace", "default"), "metadata.namespace", dots=False)
    where = f"pod {namespace}/{name}"
    spec = mapping(top.get("spec"), f"{where}: spec")
    written = texts(meta.get("annotations"), f"{where}: annotations")
    # Kubelet's own annotations would have the pod taken for a static one.
    annotations = {key: value for key, value in written.items() if not key.startswith(CONFIG_PREFIX)}
    labels = texts(meta.get("labels"), f"{where}: labels")
    default = class_of_kube(_kube_qos(spec, where)) if fallback == "kubernetes" else DEFAULT_CLASS
    qos = _qos(annotations, labels, default, where)
    containers, runs, notes = _containers(spec, qos, where)
    fields = {
        "uid": uid,
        "namespace": namespace,
        "name": name,
        "qos": qos,
        "priority": integer(spec.get("priority", 0), f"{where}: priority"),
        "containers": containers,
        "annotations": annotations,
        "labels": labels,
        "grace_s": integer(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S),
                           f"{where}: terminationGracePeriodSeconds", lowest=0),
        "phase": "Pending",
        "owner": _owner(meta, where),
    }  # fmt: skip
    foreign = sorted(written.keys() - annotations.keys())
    notes = [*(f"{where}: the annotation {key} is left out: only kubelet may write it" for key in foreign), *notes]
    notes = [*_left_out(top, _POD_KEYS, where), *_left_out(spec, _SPEC_KEYS, where), *_restarts(spec, where), *notes]
    return Manifest(record=PodRecord(pod=_checked(fields, where), runs=tuple(runs)), notes=tuple(notes))


def _qos(annotations: Mapping[str, str], labels: Mapping[str, str], default: QosClass, where: str) -> QosClass:
    try:
        return qos_class(annotations, labels=labels, default=default)
    except Refused as error:
        raise Refused(f"{where}: {error}", reason=error.reason) from error


def _owner(meta: Mapping[str, Any], where: str) -> str | None:
    """Kind/name of the one reference that says `controller: true`; other owners only clean up."""
    given = items(meta.get("ownerReferences"), f"{where}: ownerReferences")
    references = [mapping(item, f"{where}: ownerReferences[{index}]") for index, item in enumerate(given)]
    controllers = [reference for reference in references if reference.get("controller") is True]
    if len(controllers) > 1:
        raise refused(f"{where}: ownerReferences", f"{len(controllers)} say controller: true; want one at most")
    for reference in controllers:
        kind = text(reference.get("kind"), f"{where}: ownerReferences: kind")
        return f"{kind}/{text(reference.get('name'), f'{where}: ownerReferences: name')}"
    return None


def _kube_qos(spec: Mapping[str, Any], where: str) -> KubeQos:
    specs = [mapping(item, f"{where}: containers") for item in items(spec.get("containers"), f"{where}: containers")]
    return kube_qos_of([mapping(given.get("resources"), f"{where}: resources") for given in specs], where)


def _checked(fields: Mapping[str, Any], where: str) -> Pod:
    try:
        return Pod.model_validate(fields)
    except ValidationError as error:
        fault = field_faults(error)[0]
        raise refused(where, f"{'.'.join(fault.path)} = {fault.given!r}: {fault.wish}") from error


def _containers(
    pod_spec: Mapping[str, Any], qos: QosClass, where: str
) -> tuple[tuple[Container, ...], list[ContainerRun], list[str]]:
    containers: list[Container] = []
    runs: list[ContainerRun] = []
    notes: list[str] = []
    given = items(pod_spec.get("containers"), f"{where}: containers")
    if not 1 <= len(given) <= MAX_CONTAINERS:
        raise refused(f"{where}: containers", f"{len(given)} given: want 1 to {MAX_CONTAINERS}")
    for index, item in enumerate(given):
        spec = mapping(item, f"{where}: containers[{index}]")
        name = dns_name(spec.get("name"), f"{where}: containers[{index}].name", dots=False)
        here = f"{where}, container {name}"
        amounts, more = container_amounts(mapping(spec.get("resources"), f"{here}: resources"), qos, here)
        containers.append(Container(name=name, **amounts))
        runs.append(_run(spec, name, here))
        notes += [*_left_out(spec, _CONTAINER_KEYS, here), *more]
    _refuse_twins([run.name for run in runs], where + ", container {} stands twice")
    return tuple(containers), runs, notes


def _run(spec: Mapping[str, Any], name: str, where: str) -> ContainerRun:
    command = words(spec.get("command"), f"{where}: command")
    if not command or not command[0]:
        raise refused(where, "no command: images are not run on a bare host, name a program with command: [...]")
    workdir = text(spec.get("workingDir", ""), f"{where}: workingDir")
    if workdir and not workdir.startswith("/"):
        raise refused(where, f"workingDir {workdir!r}: want an absolute path")
    return ContainerRun(
        name=name,
        command=command + words(spec.get("args"), f"{where}: args"),
        env=dict(_environment(spec.get("env"), where)),
        workdir=workdir,
    )


def _environment(given: object, where: str) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(items(given, f"{where}: env")):
        entry = mapping(item, f"{where}: env[{index}]")
        name = text(entry.get("name"), f"{where}: env[{index}].name")
        if not name or "=" in name:
            raise refused(where, f"env[{index}].name {name!r}: want a name without '='")
        if "valueFrom" in entry:
            raise refused(where, f"env {name}: valueFrom needs a cluster; give a value")
        yield name, text(entry.get("value", ""), f"{where}: env {name}")


def _refuse_twins(names: Sequence[str], message: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"{message.format(name)}; give each its own name", reason="malformed")


def _restarts(spec: Mapping[str, Any], where: str) -> list[str]:
    policy = spec.get("restartPolicy", "Never")
    return [] if policy == "Never" else [f"{where}: restartPolicy {policy}: here a container that ends stays ended"]


def _left_out(given: Mapping[str, Any], known: set[str], where: str) -> list[str]:
    for key in sorted(_REFUSED_KEYS & given.keys()):
        if given[key]:
            raise refused(where, f"{key} cannot be kept on a bare host; remove it to go on without")
    left_out = sorted(given.keys() - known - _WITHOUT_MEANING - _REFUSED_KEYS)
    return [f"{where}: {key} is left out: this host runs the command as it is" for key in left_out]
