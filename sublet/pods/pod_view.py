"""Pods and the node's object as people and programs see them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import PodStatus, StoredPod
from shared.contracts.kube.quantities import format_millis, format_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Container, Pod
from shared.errors import Refused
from sublet.output import age, columns
from sublet.pods.offer import offered

PODS_HEADER = ("NAMESPACE", "NAME", "QOS", "CPU", "MEMORY", "STATUS", "EXIT", "AGE")
_BINARY = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def select(runtime: Runtime, what: str, name: str, namespace: str) -> tuple[list[StoredPod], bool]:
    """The pods that "pods", "pod NAME" or "pod/NAME" mean, and whether exactly one was asked for.

    Raises:
        Refused: no such kind or pod.
        Unavailable: the store cannot be read.
    """
    kind, _, inner = what.partition("/")
    if kind not in {"pod", "pods", "po"}:
        raise Refused(f"get {what!r}: want pods, pod/NAME, cnr or node", reason="kind")
    runtime.reconcile()
    if wanted := inner or name:
        return [runtime.pods.find(wanted, namespace)], True
    return runtime.pods.stored(), False


def state(status: PodStatus) -> str:
    """One word for people, as kubectl would say it."""
    if not status.finished:
        return "Terminating" if status.terminating else status.phase
    reasons = [status.reason, *(c.reason for c in status.containers.values())]
    return next(filter(None, reasons), "Completed" if status.phase == "Succeeded" else "Error")


def pods_table(pods: Sequence[StoredPod]) -> str:
    """One line a pod."""
    now = datetime.now(UTC)
    rows = []
    for stored in pods:
        pod, status = stored.record.pod, stored.status
        codes = ",".join(str(c.exit_code) for c in status.containers.values() if c.exit_code is not None)
        amounts = format_millis(pod.cpu_request_millis), _bytes(pod.memory_request_bytes)
        rows.append((pod.namespace, pod.name, pod.qos, *amounts, state(status), codes, age(status.created_at, now)))
    return columns(PODS_HEADER, rows) if rows else "no pods; start one: sublet run --qos reclaimed -- COMMAND"


def documents(pods: Sequence[StoredPod], *, single: bool) -> dict[str, Any]:
    """Pod documents as kubectl prints them."""
    items = [pod_document(stored) for stored in pods]
    return items[0] if single else {"apiVersion": "v1", "kind": "List", "items": items}


def pod_document(stored: StoredPod) -> dict[str, Any]:
    """One pod as a Kubernetes document; it can be applied again. Environments stay out: they hold secrets."""
    pod, status = stored.record.pod, stored.status.model_dump(mode="json", exclude_none=True)
    amounts = {container.name: container for container in pod.containers}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "annotations": pod.annotations,
            "labels": pod.labels,
            **_owner(pod),
        },
        "spec": {
            "priority": pod.priority,
            "terminationGracePeriodSeconds": int(pod.grace_s),
            "containers": [
                {"name": run.name, "command": list(run.command), "workingDir": run.workdir or "/",
                 "resources": _resources(amounts[run.name], pod.qos)}
                for run in stored.record.runs if run.name in amounts
            ],
        },
        "status": status,
    }  # fmt: skip


def cnr_table(document: dict[str, Any]) -> str:
    """What is offered to reclaimed pods."""
    offer = offered(document)
    name = str(document.get("metadata", {}).get("name", ""))
    cells = [str(offer[resource]) if resource in offer else "" for resource in (RECLAIMED_CPU, RECLAIMED_MEMORY)]
    return columns(("NAME", "RECLAIMED_MILLICPU", "RECLAIMED_MEMORY"), [(name, *cells)])


def _owner(pod: Pod) -> dict[str, Any]:
    if pod.owner is None:
        return {}
    kind, _, name = pod.owner.partition("/")
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def _resources(container: Container, qos: str) -> dict[str, dict[str, str]]:
    reclaimed = qos == "reclaimed_cores"
    cpu, memory = (RECLAIMED_CPU, RECLAIMED_MEMORY) if reclaimed else ("cpu", "memory")

    def amounts(cpu_millis: int, memory_bytes: int) -> dict[str, str]:
        texts = {
            cpu: format_units(cpu_millis) if reclaimed else format_millis(cpu_millis),
            memory: _bytes(memory_bytes),
        }
        said = {cpu: cpu_millis, memory: memory_bytes}
        return {resource: text for resource, text in texts.items() if said[resource]}

    return {
        "requests": amounts(container.cpu_request_millis, container.memory_request_bytes),
        "limits": amounts(container.cpu_limit_millis, container.memory_limit_bytes),
    }


def _bytes(amount: int) -> str:
    for suffix, factor in _BINARY:
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)
