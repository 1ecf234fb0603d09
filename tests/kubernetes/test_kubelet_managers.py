"""The kubelet of the node with its managers on: static CPU manager with whole cores, memory manager, one NUMA node.

A pod has a CPU of kubelet's; Sublet keeps off what kubelet has given away.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kube_rig.cluster import Cluster, ready
from kube_rig.node import NODE
from kube_rig.pods import container_cpus
from kube_rig.product import Product
from rig.packages import run
from rig_parts import until

from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.cpus.cpuset import CpuSet

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

BACK_LIMIT_S, SEEN_LIMIT_S = 90.0, 60.0
MANAGERS = {
    "cpuManagerPolicy": "static",
    "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
    "memoryManagerPolicy": "Static",
    "topologyManagerPolicy": "single-numa-node",
    "kubeReserved": {"cpu": "500m", "memory": "412Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "512Mi"}}],  # with what kubelet evicts for
}
STATES = ("/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state")
PINNED, TENANT, BATCH = "pinned", "tenant", "batch"

Document = dict[str, Any]


def pod(name: str, image: str, level: str, amounts: dict[str, str]) -> Document:
    """A pod at rest."""
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["sleep", "infinity"],
                 "resources": {"requests": amounts, "limits": amounts}}  # fmt: skip
    about = {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": level}}
    spec = {"schedulerName": "katalyst-scheduler", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


@pytest.fixture(scope="module")
def managed(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster whose kubelet manages CPUs and memory, until the module ends."""
    kubelet = cluster.node.kubelet
    before = list(kubelet.words)
    (given,) = (word for word in before if str(word).startswith("--config="))
    config = cluster.folder / "kubelet-managers.json"
    config.write_text(json.dumps(json.loads(Path(str(given).removeprefix("--config=")).read_text()) | MANAGERS))
    try:
        _restart(cluster, [f"--config={config}" if word == given else word for word in before])
        yield cluster
    finally:
        _restart(cluster, before)


def _restart(cluster: Cluster, words: list[str | Path]) -> None:
    """With other words; what kubelet's managers keep of other policies would stop it."""
    kubelet = cluster.node.kubelet
    kubelet.kill()
    run(cluster.node.isolation.command(["rm", "-f", *STATES]))
    kubelet.words = words
    kubelet.start()
    until(lambda: ready(cluster), BACK_LIMIT_S, "a node that is ready again")


@pytest.fixture(scope="module")
def sublet(managed: Cluster, product: str) -> Iterator[Product]:
    """Installed so that it sees kubelet's checkpoints."""
    installed = Product(managed)
    installed.install({"node": {"kubeletState": True}, "settings": {"reporter": {"rise_window_s": 5, "refresh_s": 5}}})
    image = managed.images.base.name
    installed.start(
        pod(TENANT, image, "shared_cores", {"cpu": "100m", "memory": "64Mi"}),
        pod(BATCH, image, "reclaimed_cores", {RECLAIMED_CPU: "100", RECLAIMED_MEMORY: "64Mi"}),
    )
    yield installed
    installed.end(*installed.pods())
    installed.uninstall()
    installed.leave()


def policy_of(cluster: Cluster, key: str) -> str:
    config = json.loads(cluster.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/configz"))["kubeletconfig"]
    return str(config[key])


def test_kubelet_runs_with_its_managers_on(managed: Cluster) -> None:
    assert {key: policy_of(managed, key) for key in MANAGERS if key.endswith("Policy")} == {
        key: value for key, value in MANAGERS.items() if key.endswith("Policy")
    }


def test_a_cpu_that_kubelet_has_given_to_a_pod_is_nobody_elses(sublet: Product, managed: Cluster) -> None:
    sublet.start(pod(PINNED, managed.images.base.name, "shared_cores", {"cpu": "1", "memory": "64Mi"}))
    own = cpus(sublet, PINNED)
    assert len(own) == 1
    for name in (TENANT, BATCH):
        until(partial(_is_off, sublet, name, own), SEEN_LIMIT_S, f"{name} off CPU {own}")
    assert cpus(sublet, PINNED) == own
    assert sublet.evict_lines() == []


def cpus(sublet: Product, name: str) -> CpuSet:
    """Those that the kernel lets a pod's container run on."""
    return container_cpus(sublet.cluster, name, "main")


def _is_off(sublet: Product, name: str, own: CpuSet) -> bool:
    return not cpus(sublet, name) & own
