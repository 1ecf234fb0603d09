"""What central keeps of pods for recommendation, autoscalers and service profiles, and what the API server sends it.

    python -m bench.cluster.central_mirrors

All three keep the same of each pod through one mirror. Beside it, what three mirrors of their own would take.
"""

import asyncio
import gc
import json
import time
import tracemalloc
from typing import Any

from bench.rigs.report import Row, print_rows, progress
from services.central.core.recommendation.objects.workloads import WorkloadPod, pod_of_workload

PODS, USERS = 10_000, 3


def pod(number: int) -> dict[str, Any]:
    """A pod of a Deployment as the API server sends it, without its managers."""
    amounts = {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}
    started = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    name, hash_label = f"service-{number // 20}", "6c7c59f868"
    return {
        "metadata": {
            "name": f"{name}-{hash_label}-{number:05x}", "namespace": f"team-{number % 50}", "uid": f"{number:032x}",
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"pod-template-hash": hash_label, "app": name},
            "ownerReferences": [{"kind": "ReplicaSet", "name": f"{name}-{hash_label}", "controller": True}],
        },
        "spec": {"nodeName": f"node-{number % 500}", "containers": [{"name": "main", "resources": amounts}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "main", "state": started, "resources": amounts}]},
    }  # fmt: skip


def kept(texts: list[str]) -> tuple[float, float, dict[str, WorkloadPod]]:
    """Megabytes and seconds of CPU for one mirror's keeping of all pods, and what is kept."""
    gc.collect()
    tracemalloc.start()
    found = {f"{place:032x}": one for place, text in enumerate(texts) if (one := pod_of_workload(json.loads(text)))}
    gc.collect()
    held_mb = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    began_s = time.process_time()
    for text in texts:
        pod_of_workload(json.loads(text))
    return held_mb, time.process_time() - began_s, found


def rows() -> list[Row]:
    """The rows of one list of all pods."""
    progress(f"what central keeps of {PODS} pods")
    texts = [json.dumps(pod(number)) for number in range(PODS)]
    sent_mb = sum(map(len, texts)) / 1e6
    held_mb, spent_s, found = kept(texts)
    assert len(found) == PODS
    return [
        Row(f"central's pods for {USERS} controllers, {what}, {PODS} pods: kept, sent by the API server, CPU to read",
            f"{held_mb * times:.0f} MB, {sent_mb * times:.0f} MB, {spent_s * times:.2f} s", PODS, target)
        for what, times, target in (("one mirror", 1, "-"), ("a mirror each", USERS, "-"))
    ]  # fmt: skip


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return await asyncio.to_thread(rows)


def main() -> None:
    """Print the table."""
    print_rows(rows())


if __name__ == "__main__":
    main()
