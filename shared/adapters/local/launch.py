"""A launch says how a pod runs on this host: its cgroups, their settings, its commands. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.adapters.local.pod_user import PodUser
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.knobs import Knob, Write
from shared.core.cgroups.layout import OwnLayout, container_group, pod_group
from shared.core.pods.limits import limits_of, unsaid_memory_bytes
from shared.core.pods.manifest import PodRecord
from shared.errors import Refused

LEAST_MEMORY_BYTES = 1 << 20
"""A limit below is refused (docs/facts/linux-cgroups.md#memory-limits)."""
OOM_SCORE: dict[QosClass, int] = {
    "reclaimed_cores": 900,
    "shared_cores": 0,
    "dedicated_cores": 0,
    "system_cores": 0,
}
"""When memory runs out, the kernel ends reclaimed work first, whichever process requested the memory (0 to 1000 adds
permille).

All others count as every process of the host does: by their memory.
"""


def launch_document(
    record: PodRecord, user: PodUser, env: Mapping[str, str] | None, *, host_root: str, top: str
) -> dict[str, Any]:
    """Return what the watching process needs to know, as JSON values; all containers inherit `env`, None for the
    watcher's."""
    pod = record.pod
    identity = {"uid": user.uid, "gid": user.gid, "groups": list(user.groups), "env": env}
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
                "user": identity,
                "workdir": run.workdir or "/",
                "oom_score_adj": OOM_SCORE[pod.qos],
            }
            for run in record.runs
        ],
    }


def require_room(pod: Pod, writes: Sequence[Write]) -> None:
    """Refuse a memory limit in which no process starts, before anything is made.

    Raises:
        Refused: names the limit and the least.
    """
    for write in writes:
        if write.knob is Knob.MEMORY_MAX and isinstance(write.value, int) and write.value < LEAST_MEMORY_BYTES:
            raise Refused(
                f"pod {pod.key}: memory {write.value} bytes: want at least {LEAST_MEMORY_BYTES >> 20}Mi, or no process "
                "starts in it; ask for more with --memory",
                reason="bound",
            )


def start_writes(pod: Pod, *, top: str, machine_bytes: int) -> list[Write]:
    """Return the settings of the pod's new cgroups; qrm sets CPU sets and the class's own weight.

    Weights follow the requests, as kubelet sets them; for reclaimed pods they count only within the class, which as a
    whole has the kernel's lowest weight. Pods without a memory limit get a share of the machine's, `machine_bytes`.
    """
    limits = limits_of(pod, OwnLayout(top), unsaid_memory_bytes(machine_bytes))
    quotas = {container_group(pod, one.name, top): one.cpu_limit_millis for one in pod.containers}
    writes = []
    for group, own in limits.items():
        writes.append(Write(group, Knob.CPU_SHARES, own.cpu_shares))
        # Reclaimed pods have no quota: idle CPU is theirs, and the whole class yields by weight.
        if quotas.get(group) and pod.qos != "reclaimed_cores":
            writes.append(Write(group, Knob.CPU_QUOTA, quotas[group]))
        if own.memory_bytes is not None:
            writes.append(Write(group, Knob.MEMORY_MAX, own.memory_bytes))
    return writes
