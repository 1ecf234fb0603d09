"""How a pod runs on this host: its cgroups, their settings, its commands. Pure."""

from typing import Any

from shared.contracts.pod import Container, Pod
from shared.core.knobs import Knob, Write, shares_of_millis
from shared.core.layout import container_group, pod_group
from shared.core.manifest import PodRecord

OOM_SCORE = {"reclaimed_cores": 900, "shared_cores": 0}
"""When memory runs out the kernel ends reclaimed work first, whoever asked for the memory (0 to 1000 adds permille)."""


def launch_document(record: PodRecord, *, host_root: str, top: str) -> dict[str, Any]:
    """What the watching process needs to know, as JSON values."""
    pod = record.pod
    return {
        "pod": pod.key,
        "host_root": host_root,
        "group": pod_group(pod, top),
        "containers": [
            {
                "name": run.name,
                "group": container_group(pod, run.name, top),
                "command": list(run.command),
                "env": run.env,
                "workdir": run.workdir or "/",
                "oom_score_adj": OOM_SCORE[pod.qos],
            }
            for run in record.runs
        ],
    }


def start_writes(pod: Pod, *, top: str) -> list[Write]:
    """Settings of the pod's fresh cgroups; CPU sets and the class's own weight are qrm's.

    Weights follow the requests, as kubelet sets them; for reclaimed pods they count among the class only, which as a
    whole has the kernel's lowest weight.
    """
    group = pod_group(pod, top)
    writes = [Write(group, Knob.CPU_SHARES, shares_of_millis(pod.cpu_request_millis))]
    for container in pod.containers:
        inner = container_group(pod, container.name, top)
        writes.append(Write(inner, Knob.CPU_SHARES, shares_of_millis(container.cpu_request_millis)))
        if container.cpu_limit_millis and pod.qos != "reclaimed_cores":
            writes.append(Write(inner, Knob.CPU_QUOTA, container.cpu_limit_millis))
        if memory_bytes := _memory_limit(pod, container):
            writes.append(Write(inner, Knob.MEMORY_MAX, memory_bytes))
    return writes


def _memory_limit(pod: Pod, container: Container) -> int:
    """Reclaimed memory is taken back at any time: what such a pod asked for is also the most it gets."""
    if pod.qos == "reclaimed_cores":
        return container.memory_limit_bytes or container.memory_request_bytes
    return container.memory_limit_bytes
