"""What later tests stand on: stock programs, real pods in real cgroups, the Eviction API, parts that die and return."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from kube_rig.answers import answers
from kube_rig.cluster import Cluster, CommandError, ready
from kube_rig.component import Component
from kube_rig.control_plane import API_PORT
from kube_rig.isolation import INTERFACE, NETWORK
from kube_rig.node import NODE
from kube_rig.programs import HELM, KUBERNETES
from rig_parts import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

POD_LIMIT_S, GONE_LIMIT_S, BACK_LIMIT_S = 60.0, 60.0, 60.0
PARTS = (
    *(f"control_plane.{name}" for name in ("etcd", "apiserver", "controller_manager", "scheduler")),
    *(f"node.{name}" for name in ("containerd", "kubelet", "kube_proxy", "coredns")),
)
ASK_THE_API_SERVER = """python3 -c "
import ssl, urllib.request
trusting = ssl.create_default_context(cafile='/var/run/secrets/kubernetes.io/serviceaccount/ca.crt')
print(urllib.request.urlopen('https://kubernetes.default.svc/readyz', context=trusting).read())
"
"""
LOOK_AT_THE_NODES_GROUPS = """
cd /host/cpuset/kubepods/besteffort/pod$UID && ls -d . && cat cpuset.mems >cpuset.mems && echo written
"""
_numbers = count(1)
Pod = dict[str, Any]
MakePod = Callable[..., Pod]


def path_of(pod: Pod) -> str:
    return f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"


def exists(cluster: Cluster, pod: Pod) -> bool:
    return cluster.request("GET", path_of(pod))[0] == 200


def evict(cluster: Cluster, pod: Pod, uid: str) -> tuple[int, dict[str, Any]]:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod["metadata"]["name"], "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    return cluster.request("POST", f"{path_of(pod)}/eviction", body)


@pytest.fixture
def make_pod(cluster: Cluster) -> Iterator[MakePod]:
    """Make a running pod of Debian with Python; what it was made of goes with the test."""
    made: list[Pod] = []

    def make(
        script: str = "",
        *,
        image: str | None = None,
        requests: dict[str, str] | None = None,
        host_path: str | None = None,
        **spec: Any,
    ) -> Pod:
        name = f"rig-{next(_numbers)}"
        container = {
            "name": "main",
            "image": image or cluster.images.base.name,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", f"{script}\nexec sleep infinity"],
            "resources": {"requests": requests or {}},
            "env": [{"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        }
        if host_path is not None:
            container["volumeMounts"] = [{"name": "host", "mountPath": "/host"}]
            spec["volumes"] = [{"name": "host", "hostPath": {"path": host_path}}]
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
            }
        )
        made.append(cluster.get("pod", name))
        cluster.wait_ready(name, POD_LIMIT_S)
        return cluster.get("pod", name)

    yield make
    for pod in made:
        cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--ignore-not-found", "--wait=false")


def groups(cluster: Cluster, pod: Pod) -> list[Path]:
    """The pod's groups in all hierarchies."""
    return cluster.groups(f"kubepods/**/pod{pod['metadata']['uid']}")


def logs(cluster: Cluster, pod: Pod, last: str) -> str:
    """What the pod has said, once it has said the last of it."""
    name = pod["metadata"]["name"]
    until(lambda: last in cluster.kubectl("logs", name), POD_LIMIT_S, f"pod {name} saying {last!r}")
    return cluster.kubectl("logs", name)


def test_the_programs_are_the_stock_ones(cluster: Cluster) -> None:
    assert cluster.request("GET", "/version")[1]["gitVersion"] == KUBERNETES
    info = cluster.get("node", NODE)["status"]["nodeInfo"]
    assert info["kubeletVersion"] == KUBERNETES
    assert info["containerRuntimeVersion"].startswith("containerd://")
    assert cluster.helm("version", "--short").strip().split("+")[0] == HELM


def test_the_node_is_ready_and_offers_what_the_machine_has(cluster: Cluster) -> None:
    assert ready(cluster)
    assert cluster.get("node", NODE)["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(("requests", "home"), [({}, "besteffort"), ({"cpu": "100m"}, "burstable")])
def test_a_pod_runs_in_its_own_groups_is_heard_and_leaves_nothing(
    cluster: Cluster, make_pod: MakePod, requests: dict[str, str], home: str
) -> None:
    pod = make_pod("echo said inside", requests=requests)
    own = groups(cluster, pod)
    assert {group.parts[-3:] for group in own} == {("kubepods", home, f"pod{pod['metadata']['uid']}")}
    assert len(own) == len(cluster.groups("kubepods"))
    container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    (pid, *_) = (own[0] / container / "cgroup.procs").read_text().split()
    assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\0infinity\0"
    assert logs(cluster, pod, "inside") == "said inside\n"
    assert cluster.kubectl("exec", pod["metadata"]["name"], "--", "hostname").strip() == pod["metadata"]["name"]
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "--wait")
    until(lambda: not groups(cluster, pod), GONE_LIMIT_S, "the pod's groups being gone")
    assert not Path(f"/proc/{pid}").exists()


def test_a_pod_reaches_the_api_server_by_the_name_of_its_service(cluster: Cluster, make_pod: MakePod) -> None:
    pod = make_pod(ASK_THE_API_SERVER)
    assert logs(cluster, pod, "ok") == "b'ok'\n"


def test_a_pod_that_is_given_the_nodes_groups_finds_kubepods_at_their_top_and_may_write(
    cluster: Cluster, make_pod: MakePod
) -> None:
    pod = make_pod(LOOK_AT_THE_NODES_GROUPS, host_path="/sys/fs/cgroup")
    assert logs(cluster, pod, "written") == ".\nwritten\n"


def test_the_image_of_this_checkout_runs_in_a_pod(cluster: Cluster, make_pod: MakePod, product: str) -> None:
    pod = make_pod("sublet --help; id -u", image=product)
    assert "Usage:" in logs(cluster, pod, "10001")


def test_helm_installs_a_chart_and_takes_it_away(cluster: Cluster, tmp_path: Path) -> None:
    cluster.helm("create", str(tmp_path / "chart"))
    cluster.helm("install", "rig", str(tmp_path / "chart"), "--set", "replicaCount=0", "--wait")
    assert cluster.get("deployment", "rig-chart")["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    cluster.helm("uninstall", "rig", "--wait")
    assert cluster.get("deployments")["items"] == []


def test_the_scheduler_also_answers_to_the_name_of_the_quick_start(cluster: Cluster, make_pod: MakePod) -> None:
    assert make_pod(schedulerName="katalyst-scheduler")["spec"]["nodeName"] == NODE


def test_an_eviction_of_another_uid_is_refused_and_of_the_right_one_ends_the_pod(
    cluster: Cluster, make_pod: MakePod
) -> None:
    pod = make_pod()
    assert evict(cluster, pod, "00000000-0000-0000-0000-000000000000")[0] == 409
    assert "deletionTimestamp" not in cluster.get("pod", pod["metadata"]["name"])["metadata"]
    assert evict(cluster, pod, pod["metadata"]["uid"])[0] == 201
    until(lambda: not exists(cluster, pod), GONE_LIMIT_S, "the evicted pod being gone")
    assert evict(cluster, pod, pod["metadata"]["uid"])[0] == 404


def test_an_exhausted_budget_makes_an_eviction_wait(cluster: Cluster, make_pod: MakePod) -> None:
    pod = make_pod()
    name = pod["metadata"]["name"]
    cluster.kubectl("label", "pod", name, "guarded=yes")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}}
    cluster.apply(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": budget}
    )
    try:
        until(lambda: cluster.get("pdb", name).get("status", {}).get("currentHealthy"), POD_LIMIT_S, "the budget")
        assert evict(cluster, pod, pod["metadata"]["uid"])[0] == 429
        assert exists(cluster, pod)
    finally:
        cluster.kubectl("delete", "pdb", name)


def test_what_the_machine_has_of_a_running_cluster_is_seen(cluster: Cluster) -> None:
    """That nothing of it is left is asserted at the end of the session."""
    left = cluster.node.isolation.left()
    assert f"/sys/class/net/{INTERFACE}" in left
    assert {str(group) for group in cluster.groups("kubepods")} <= {f"{one}/kubepods" for one in left}
    assert any(NETWORK in line for line in left)


def test_a_user_may_what_roles_say_and_nothing_else(cluster: Cluster) -> None:
    nobody = cluster.client("rig:nobody")
    with pytest.raises(CommandError, match='User "rig:nobody" cannot list resource "pods"'):
        cluster.kubectl("get", "pods", kubeconfig=nobody)


def test_a_frozen_api_server_lets_callers_wait_and_goes_on(cluster: Cluster) -> None:
    cluster.control_plane.apiserver.freeze()
    assert not answers(API_PORT, "/readyz")
    cluster.control_plane.apiserver.thaw()
    until(lambda: answers(API_PORT, "/readyz"), BACK_LIMIT_S, "an API server that goes on")


@pytest.mark.parametrize("part", PARTS)
def test_any_part_that_is_killed_comes_back_and_no_pod_has_noticed(
    cluster: Cluster, make_pod: MakePod, part: str
) -> None:
    before = make_pod()
    component: Component = attrgetter(part)(cluster)
    component.kill()
    assert component.pid is None
    component.start()
    until(lambda: answers(API_PORT, "/readyz") and ready(cluster), BACK_LIMIT_S, f"a cluster with {part} back")
    assert make_pod()["spec"]["nodeName"] == NODE
    after = cluster.get("pod", before["metadata"]["name"])
    assert (after["metadata"]["uid"], after["status"]["containerStatuses"]) == (
        before["metadata"]["uid"],
        before["status"]["containerStatuses"],
    )
