"""`sublet describe`: everything that is stored about a pod, or this node, for people."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.adapters.local.stored_pod import ContainerStatus, StoredPod
from shared.contracts.kube.quantities import format_millis
from shared.contracts.kube.taint import Taint
from shared.contracts.pod import Container
from shared.core.pods.manifest import ContainerRun
from sublet.output import NONE, printable
from sublet.pods.offer import offered
from sublet.pods.shown.pod_view import format_bytes, pods_table, state
from sublet.views.taints import line

_WIDTH = 18


def describe_pod(stored: StoredPod) -> str:
    """One pod; environments stay out, they hold secrets."""
    pod, status = stored.record.pod, stored.status
    lines = [
        _field("Name", pod.name),
        _field("Namespace", pod.namespace),
        _field("UID", pod.uid),
        _field("QoS class", pod.qos),
        _field("Priority", str(pod.priority)),
        _field("Controlled by", pod.owner or NONE),
        *_mapping("Labels", pod.labels),
        *_mapping("Annotations", pod.annotations),
        _field("Status", state(status)),
        *([_field("Reason", status.reason)] if status.reason else []),
        *([_field("Message", status.message)] if status.message else []),
        _field("Created", _time(status.created_at)),
        _field("Started", _time(status.started_at)),
        _field("Ended", _time(status.ended_at)),
        _field("Grace period", f"{pod.grace_s:g} s"),
        "Containers:",
    ]
    amounts = {container.name: container for container in pod.containers}
    for run in stored.record.runs:
        lines += _container(run, amounts.get(run.name), status.containers.get(run.name))
    return "\n".join(
        [*map(printable, lines), f"Decisions and evictions: sublet explain pod/{pod.name} -n {pod.namespace}"]
    )


def describe_node(node: str, taints: Sequence[Taint], cnr: Mapping[str, Any] | None, pods: Sequence[StoredPod]) -> str:
    """This node: its taints, what it offers to reclaimed pods, and its pods that have not ended."""
    offer = offered(dict(cnr)) if cnr is not None else {}
    lines = [_field("Name", node), *_listed("Taints", [line(taint) for taint in taints])]
    lines += _listed("Offered", [f"{resource} {amount}" for resource, amount in sorted(offer.items())])
    running = [stored for stored in pods if not stored.status.finished]
    lines.append(_field("Pods", str(len(running))))
    return "\n".join([*map(printable, lines), *(["", pods_table(running)] if running else [])])


def _container(run: ContainerRun, amounts: Container | None, status: ContainerStatus | None) -> Iterator[str]:
    yield f"  {run.name}:"
    yield _field("    Command", shlex.join(run.command))
    yield _field("    Working folder", run.workdir or "/")
    if amounts is not None:
        yield _field("    Requests", _amounts(amounts.cpu_request_millis, amounts.memory_request_bytes))
        yield _field("    Limits", _amounts(amounts.cpu_limit_millis, amounts.memory_limit_bytes))
    if status is None:
        yield _field("    State", "waiting")
        return
    if status.exit_code is None:
        yield _field("    State", f"running, process {status.pid}, since {_time(status.started_at)}")
        return
    why = f" ({status.reason})" if status.reason else ""
    yield _field("    State", f"ended with exit code {status.exit_code}{why} at {_time(status.ended_at)}")


def _amounts(cpu_millis: int, memory_bytes: int) -> str:
    cpu = format_millis(cpu_millis) if cpu_millis else NONE
    return f"CPU {cpu}, memory {format_bytes(memory_bytes) if memory_bytes else NONE}"


def _mapping(title: str, values: Mapping[str, str]) -> Iterator[str]:
    yield from _listed(title, [f"{key}={value}" for key, value in sorted(values.items())])


def _listed(title: str, values: Sequence[str]) -> Iterator[str]:
    for position, value in enumerate(values or [NONE]):
        yield _field(title if position == 0 else "", value)


def _field(title: str, value: str) -> str:
    return f"{f'{title}:' if title else '':<{_WIDTH}} {value}"


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else NONE
