"""What the agent of one node may write of pods, where it may write of them at all: one annotation of its own."""

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kube_agents import bound
from kube_cluster import IN_FORCE_LIMIT_S, SYSTEM
from kube_rig.cluster import Cluster
from rig_parts import until

from shared.adapters.kube.client import Kube, KubeError
from shared.core.pods.cpu_binding import RESOURCE_STATUS

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

Document = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
WHOLE = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
STATUS = {RESOURCE_STATUS: '{"cpuset":"0-1"}'}


@pytest.fixture(scope="module")
def pods(guarded: Cluster, nodes: tuple[str, str], permitted: str) -> Iterator[str]:
    """Pods `mine`, `others` and `plain`, and the right that the chart gives with `reporter.resource_status`."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "tried-pods"},
            "rules": [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["patch"]}]}  # fmt: skip
    binding = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "tried-pods"},
               "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "tried-pods"},
               "subjects": [{"kind": "ServiceAccount", "name": "sublet-node", "namespace": SYSTEM}]}  # fmt: skip
    guarded.apply(role, binding)
    for name, node, qos in (("mine", nodes[0], "LSR"), ("others", nodes[1], "LSR"), ("plain", nodes[0], "LS")):
        spec = bound(node)
        spec["containers"][0]["resources"] = WHOLE
        meta = {"name": name, "namespace": permitted, "labels": {"koordinator.sh/qosClass": qos},
                "annotations": {"other": "stays"}}  # fmt: skip
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        until(partial(made, guarded, document), IN_FORCE_LIMIT_S, f"pod {name}")
    yield permitted
    guarded.kubectl("delete", "clusterrole,clusterrolebinding", "tried-pods")
    guarded.kubectl("delete", "pods", "mine", "others", "plain", "-n", permitted, "--grace-period=0", "--force")


def made(cluster: Cluster, document: Document) -> bool:
    """The label of the namespace takes a moment to have its effect."""
    from kube_rig.cluster import CommandError

    try:
        cluster.kubectl("create", "--filename", "-", given=json.dumps(document))
    except CommandError:
        return False
    return True


async def patched(who: Path, path: str, change: Document) -> str:
    kube = Kube(who)
    try:
        await kube.merge(path, change, manager="sublet-reporter")
    except KubeError as refusal:
        return str(refusal)
    finally:
        await kube.close()
    return ""


def of(pods: str, name: str) -> str:
    return f"/api/v1/namespaces/{pods}/pods/{name}"


def test_an_agent_writes_the_cpus_of_a_pod_of_its_own_node(guarded: Cluster, pods: str, agent: Path) -> None:
    for name, words in (("others", "writes of its own pods alone"), ("plain", "LSE or LSR alone"), ("mine", "")):
        uid = guarded.get("pod", name, "-n", pods)["metadata"]["uid"]
        said = asyncio.run(patched(agent, of(pods, name), {"metadata": {"uid": uid, "annotations": STATUS}}))
        assert (words in said, bool(words)) == (True, bool(said))
        found = guarded.get("pod", name, "-n", pods)["metadata"]["annotations"]
        assert found == {"other": "stays", **({} if words else STATUS)}


def test_a_pod_of_another_uid_is_not_written(guarded: Cluster, pods: str, agent: Path) -> None:
    before = guarded.get("pod", "mine", "-n", pods)["metadata"]
    another = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000", "annotations": STATUS}}
    assert "metadata.uid" in asyncio.run(patched(agent, of(pods, "mine"), another))
    assert guarded.get("pod", "mine", "-n", pods)["metadata"] == before


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"annotations": {"other": "else"}}},
        {"metadata": {"annotations": {"other": None}}},
        {"metadata": {"annotations": {"new": ""}}},
        {"metadata": {"labels": {"koordinator.sh/priority": "9"}}},
        {"metadata": {"finalizers": ["a.example/held"]}},
        {"metadata": {"annotations": {RESOURCE_STATUS: "x" * 2049}}},
        {"spec": {"activeDeadlineSeconds": 1}},
        {"spec": {"containers": [{"name": "main", "image": "evil.example/evil", "resources": WHOLE}]}},
        {"status": {"phase": "Failed"}},
    ],
    ids=str,
)
def test_an_agent_changes_nothing_else_of_a_pod(guarded: Cluster, pods: str, agent: Path, change: Document) -> None:
    path = of(pods, "mine") + ("/status" if "status" in change else "")
    said = asyncio.run(patched(agent, path, change))
    # What no client may change of a pod the API server refuses before it asks the policy.
    assert "denied request" in said or "pod updates may not change fields" in said
