"""Pods and the node's object as people and programs see them."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.adapters.local.stored_pod import PodStatus, StoredPod
from shared.contracts.kube.quantities import format_millis, format_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Container, Pod
from sublet.output import age, columns, printable
from sublet.pods.offer import offered

PODS_HEADER = ("NAMESPACE", "NAME", "QOS", "CPU", "MEMORY", "STATUS", "EXIT", "AGE")
WIDE_HEADER = ("UID", "PIDS", "COMMAND")
_BINARY = (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def state(status: PodStatus) -> str:
    """One word for people, as kubectl would say it."""
    if not status.finished:
        return "Terminating" if status.terminating else status.phase
    reasons = [status.reason, *(c.reason for c in status.containers.values())]
    return next(filter(None, reasons), "Completed" if status.phase == "Succeeded" else "Error")


def pods_table(pods: Sequence[StoredPod], *, wide: bool = False, header: bool = True) -> str:
    """One line a pod; `wide` says UID, processes and command too."""
    now = datetime.now(UTC)
    rows = [_row(stored, now, wide=wide) for stored in pods]
    if not rows:
        return "no pods; start one: sublet run --qos reclaimed -- COMMAND" if header else ""
    text = columns(PODS_HEADER + (WIDE_HEADER if wide else ()), rows)
    return text if header else text.partition("\n")[2]


def _row(stored: StoredPod, now: datetime, *, wide: bool) -> tuple[str, ...]:
    pod, status = stored.record.pod, stored.status
    codes = ",".join(str(c.exit_code) for c in status.containers.values() if c.exit_code is not None)
    amounts = format_millis(pod.cpu_request_millis), format_bytes(pod.memory_request_bytes)
    row = (pod.namespace, pod.name, pod.qos, *amounts, state(status), codes, age(status.created_at, now))
    if not wide:
        return row
    pids = ",".join(str(c.pid) for c in status.containers.values() if c.pid is not None and c.exit_code is None)
    commands = "; ".join(shlex.join(run.command) for run in stored.record.runs)
    return (*row, pod.uid, pids, printable(commands))


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
            memory: format_bytes(memory_bytes),
        }
        said = {cpu: cpu_millis, memory: memory_bytes}
        return {resource: text for resource, text in texts.items() if said[resource]}

    return {
        "requests": amounts(container.cpu_request_millis, container.memory_request_bytes),
        "limits": amounts(container.cpu_limit_millis, container.memory_limit_bytes),
    }


def format_bytes(amount: int) -> str:
    """Bytes with the largest binary suffix that divides them."""
    for suffix, factor in _BINARY:
        if amount and amount % factor == 0:
            return f"{amount // factor}{suffix}"
    return str(amount)
