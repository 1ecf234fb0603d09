"""A node's services over the largest pods that an API server takes; a process of its own, for its memory is looked at.

Run as `python heavy_node.py FOLDER`, the bus and the rest by the settings' environment.
"""

import json
import sys
from pathlib import Path

from kernel_trees import KernelTree

from services.advisor.main import PLAN as ADVISOR
from services.metrics.main import PLAN as METRICS
from services.qrm.main import PLAN as QRM
from shared.adapters.files.pods import PodsFile
from shared.adapters.process import main
from shared.contracts.pod import Pod
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.pods.kube_pod import pod_of
from shared.core.pods.qos import DOMAIN

PODS = 250
CONTAINER_ID = "containerd://" + "a" * 64
LONG = {f"{DOMAIN}{name}_enhancement": "x" * 80_000 for name in ("cpu", "memory", "network")}


def containers_of(number: int) -> int:
    """Two megabytes of them in every fiftieth pod."""
    return 6000 if number % 50 == 2 else {0: 1, 1: 24, 2: 100}[number % 3]


def document(number: int) -> str:
    """A pod of about a megabyte, as the API server sends it: labels, annotations and containers take turns."""
    kind = number % 3
    labels = {f"l{one:05}": "v" * 60 for one in range(14_000)} if kind == 0 else {"app": "a" * 63}
    count = containers_of(number)
    amounts = {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"cpu": "100m", "memory": "2Mi"}}
    rows = [{"name": f"{'c' * 57}{one:05}", "resources": amounts} for one in range(count)]
    statuses = [{"name": row["name"], "containerID": CONTAINER_ID} for row in rows]
    return json.dumps({
        "metadata": {"uid": f"{number:08x}", "namespace": "n" * 63, "name": f"{'p' * 249}{number:04}", "labels": labels,
                     "annotations": LONG if kind == 1 else {},
                     "ownerReferences": [{"controller": True, "kind": "Job", "name": "o" * 253}]},
        "spec": {"containers": rows},
        "status": {"phase": "Running", "qosClass": "Burstable", "containerStatuses": statuses},
    })  # fmt: skip


def known_pods() -> list[Pod]:
    """One after the other, as a watch brings them."""
    return [pod for number in range(PODS) if (pod := pod_of(json.loads(document(number)))) is not None]


def make_host(folder: Path, pods: list[Pod]) -> None:
    """The kernel's files of a node with these pods' groups."""
    tree, layout = KernelTree(folder, 2), KubeletLayout("cgroupfs")
    tree.machine()
    tree.node()
    for group in (*layout.homes, *(layout.pod_group(pod) for pod in pods)):
        tree.group(group, usage_ns=1_000_000, memory=5 << 20, rss=1 << 20, inactive_file=0)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pods = known_pods()
    make_host(folder / "host", pods)
    PodsFile(folder / "state").write(pods)
    (folder / "asked").write_text(str(sum(map(containers_of, range(PODS)))))
    del pods
    main([METRICS, ADVISOR, QRM])
