"""What a reclaimed pod asks for binds it on a real kubelet, for which such a pod has asked for nothing."""

import re
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from kube_rig.cluster import Cluster
from kube_rig.node import NODE
from kube_rig.pods import container_status, group_setting
from kube_rig.product import Product
from rig_parts import until

from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.cgroups.knobs import (
    UNLIMITED,
    Knob,
    shares_of_millis,
    weight_of_shares,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

MIB = 1 << 20
SEEN_LIMIT_S, KILLED_LIMIT_S, BACK_LIMIT_S = 30.0, 60.0, 90.0
USE_LIMIT_S = 180.0
BATCH, TENANT = "limited", "unlimited"
QUIET, GREEDY, PREPARE = "quiet", "greedy", "prepare"
QUIET_MILLIS, GREEDY_MILLIS = 100, 300
EACH_BYTES, FIRST_BYTES = 64 * MIB, 256 * MIB
TAKE_MORE = """
until test -e /tmp/go; do sleep 0.2; done
exec python3 -c "held = bytearray(200 << 20); import signal; signal.pause()"
"""

Document = dict[str, Any]


def container(name: str, base: str, script: str, millis: int = 0, memory: int = 0) -> Document:
    amounts = {RECLAIMED_CPU: str(millis), RECLAIMED_MEMORY: str(memory)} if memory else {}
    return {"name": name, "image": base, "imagePullPolicy": "Never", "command": ["sh", "-c", script],
            "resources": {"requests": amounts, "limits": amounts}}  # fmt: skip


def pod(name: str, level: str, *containers: Document, init: tuple[Document, ...] = ()) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": level}},
        "spec": {
            "schedulerName": "katalyst-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": list(containers),
            "initContainers": list(init),
        },
    }


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed, with a batch pod of two containers, and a tenant that is best-effort as well."""
    installed = Product(cluster)
    installed.install({"settings": {"reporter": {"node_metric": {"enabled": True}}}})
    base = cluster.images.base.name
    quiet = container(QUIET, base, "exec sleep infinity", QUIET_MILLIS, EACH_BYTES)
    greedy = container(GREEDY, base, TAKE_MORE, GREEDY_MILLIS, EACH_BYTES)
    prepare = container(PREPARE, base, "true", QUIET_MILLIS, FIRST_BYTES)
    installed.start(
        pod(BATCH, "reclaimed_cores", quiet, greedy, init=(prepare,)),
        pod(TENANT, "shared_cores", container("main", base, "exec sleep infinity")),
    )
    yield installed
    installed.end(*installed.pods())
    installed.uninstall()
    installed.leave()


def limits(cluster: Cluster) -> list[int | None]:
    """Of the batch pod and of its containers."""
    return [group_setting(cluster, Knob.MEMORY_MAX, BATCH, one) for one in ("", QUIET, GREEDY)]


def has_weight(cluster: Cluster, container: str, shares: int) -> bool:
    return group_setting(cluster, Knob.CPU_SHARES, BATCH, container) in (shares, weight_of_shares(shares))


def ran_out_of_memory(container_id: str) -> bool:
    """Whether the kernel's log says that this container's own group was out of memory.

    The runtime hears of it by an event, which may come after that of the end: then its reason is Error.
    """
    told = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    number = container_id.rpartition("/")[2]
    return any(re.search(rf"oom_memcg=[^,]*{number}", line) for line in told.splitlines())


def wait_limited(cluster: Cluster, limit_s: float) -> None:
    until(lambda: limits(cluster) == [FIRST_BYTES, EACH_BYTES, EACH_BYTES], limit_s, "the limits of the batch pod")


def test_every_container_has_its_limit_and_its_weight_and_the_pod_what_the_scheduler_counted(
    sublet: Product, cluster: Cluster
) -> None:
    wait_limited(cluster, SEEN_LIMIT_S)
    for name, millis in ((QUIET, QUIET_MILLIS), (GREEDY, GREEDY_MILLIS)):
        shares = shares_of_millis(millis)
        until(partial(has_weight, cluster, name, shares), SEEN_LIMIT_S, f"the weight of {name}")


def test_who_takes_more_is_killed_in_his_own_container_and_starts_anew_with_the_same_limit(
    sublet: Product, cluster: Cluster
) -> None:
    cluster.kubectl("exec", BATCH, "--container", GREEDY, "--", "touch", "/tmp/go")
    until(lambda: container_status(cluster, BATCH, GREEDY)["restartCount"] == 1, KILLED_LIMIT_S, f"the end of {GREEDY}")
    ended = container_status(cluster, BATCH, GREEDY)["lastState"]["terminated"]
    assert ended["exitCode"] == 137
    assert ended["reason"] == "OOMKilled" or ran_out_of_memory(ended["containerID"]), ended
    assert container_status(cluster, BATCH, QUIET)["restartCount"] == 0
    wait_limited(cluster, SEEN_LIMIT_S)


def test_the_limits_outlive_a_kubelet_that_starts_anew(sublet: Product, cluster: Cluster) -> None:
    cluster.node.kubelet.kill()
    cluster.node.kubelet.start()
    cluster.wait_ready(BATCH, BACK_LIMIT_S)
    wait_limited(cluster, SEEN_LIMIT_S)


def test_the_node_metric_tells_what_the_node_and_each_pod_use(sublet: Product, cluster: Cluster) -> None:
    """As Koordinator's first release shows it with `kubectl get nodemetrics NODE -o yaml`."""

    def told() -> bool:
        found = cluster.get("nodemetrics")["items"]
        named = {pod["name"] for one in found for pod in one.get("status", {}).get("podsMetric", ())}
        return {BATCH, TENANT} <= named

    until(told, USE_LIMIT_S, "the uses of both pods")
    # kubectl leaves out who wrote what.
    _, found = cluster.request("GET", f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}")
    used = found["status"]["nodeMetric"]["nodeUsage"]["resources"]
    pods = {pod["name"]: pod for pod in found["status"]["podsMetric"]}
    assert parse_millis(used["cpu"]) > 0
    assert parse_units(used["memory"]) > sum(
        parse_units(pod["podUsage"]["resources"]["memory"]) for pod in pods.values()
    )
    assert (pods[BATCH]["qos"], pods[BATCH]["priority"]) == ("BE", "koord-batch")
    assert (pods[TENANT]["qos"], pods[TENANT]["priority"]) == ("LS", "koord-prod")
    assert [row["manager"] for row in found["metadata"]["managedFields"] if row.get("subresource") == "status"] == [
        "sublet-node-metric"
    ]


def test_a_tenant_beside_it_is_as_kubelet_made_it(sublet: Product, cluster: Cluster) -> None:
    for one in ("", "main"):
        assert group_setting(cluster, Knob.MEMORY_MAX, TENANT, one) == UNLIMITED
        assert group_setting(cluster, Knob.CPU_SHARES, TENANT, one) in (2, weight_of_shares(2))
    assert container_status(cluster, TENANT, "main")["restartCount"] == 0
