"""What an uninstall takes out of a cluster: all that reporter, evictor and central have put there, and nothing else."""

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from kube_api import Api, FakeKube

from services.central.core.tide.change import CHANGE, NodeChange
from services.central.core.tide.marks import SideTaints, marks_of
from services.central.core.tide.pool import FINALIZER, POOLS
from shared.adapters.clock import LoopClock
from shared.adapters.kube.node import KubeNode
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.kube.taints import KubeTaints
from shared.contracts.kube.taint import Taint
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
from shared.core.api_kind import CNCS, CNRS, NODE_METRICS, NODE_SLOS, NODES, PODS
from shared.errors import Unavailable
from sublet.cluster.rehearsed import RehearsedKube
from sublet.cluster.uninstall import clear_cluster, uninstall_from_cluster

FOREIGN = {"key": "example.org/mine", "effect": "NoSchedule"}
SYSTEM = "sublet-system"
NOBODY_GIVES_BACK = "no DaemonSet sublet-give-back: pods may keep limits until `kubectl apply -k deploy/k8s/uninstall`"
GIVE_BACK = f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets/sublet-give-back"
SOME_READY = {"conditions": [{"type": "Ready", "status": "True"}]}
UNREADY = {"conditions": [{"type": "Ready", "status": "Unknown"}]}


@pytest.fixture
async def api() -> Api:
    """A node on which everybody has written."""
    api = Api()
    kube = FakeKube(api)
    objects = KubeObjects(kube, LoopClock(), manager="sublet-central")
    api.put(NODES.path("n1"), {"spec": {"taints": [FOREIGN]}, "status": {"allocatable": {"cpu": "4"}}})
    pressure = Taint.model_validate({"key": "node.katalyst.kubewharf.io/CPUPressure", "effect": "NoSchedule"})
    amounts = {TUTORIAL_RECLAIMED_CPU: "4k", TUTORIAL_RECLAIMED_MEMORY: "1Gi"}
    document = {**CNRS.head, "metadata": {"name": "n1"}, "status": {"resourceAllocatable": amounts}}
    await KubeNode(kube, "n1", dict).write(document)
    taints = KubeTaints(kube, "n1", objects)
    await taints.write([pressure])
    await taints.show([pressure])
    rows = [{"type": "AgentReady", "status": "True", "reason": "AllAgentsReady"}]
    status = {"metadata": {"name": "n1"}, "status": {"conditions": rows}}
    await objects.apply(CNRS, status, manager="sublet-central", status=True)
    await objects.create(CNCS, {"metadata": {"name": "n1"}, "spec": {}})
    for kind, ours in ((NODE_METRICS, "sublet-node-metric"), (NODE_SLOS, "sublet-central")):
        for name, managers in (("n1", [ours]), ("n2", [ours, "koord-manager"])):
            written = [{"manager": manager, "operation": "Update"} for manager in managers]
            api.put(kind.path(name), {"metadata": {"name": name, "managedFields": written}})
    return api


async def uninstalled(api: Api) -> list[str]:
    said: list[str] = []
    await uninstall_from_cluster(FakeKube(api), LoopClock(), SYSTEM, wait_s=0, say=said.append)
    return said


async def test_nothing_of_ours_is_left_and_all_else_is_as_it_was(api: Api) -> None:
    first, *done = await uninstalled(api)
    assert first == NOBODY_GIVES_BACK
    assert len(done) == 6
    # Another's spec stands in those of n2.
    assert list(api.objects) == [NODES.path("n1"), NODE_METRICS.path("n2"), NODE_SLOS.path("n2")]
    node = api.objects[NODES.path("n1")]
    assert (node["spec"], node["status"]["allocatable"]) == ({"taints": [FOREIGN]}, {"cpu": "4"})
    assert await uninstalled(api) == [NOBODY_GIVES_BACK]


@pytest.mark.parametrize(
    ("component", "words"),
    [
        ("node", "agents still run after 0 s in sublet-system: one; delete DaemonSet sublet-node"),
        ("central", "centrals still run after 0 s in sublet-system: one; delete Deployment sublet-central"),
        ("webhook", "webhooks still run after 0 s in sublet-system: one; delete Deployment sublet-webhook"),
        ("extender", "extenders still run after 0 s in sublet-system: one; delete Deployment sublet-extender"),
    ],
)
async def test_nothing_is_taken_while_somebody_would_write_it_again(api: Api, component: str, words: str) -> None:
    labels = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": component}
    api.put(PODS.path("one", SYSTEM), {"metadata": {"labels": labels}})
    before = dict(api.objects)
    with pytest.raises(Unavailable, match=words):
        await uninstalled(api)
    assert api.objects == before
    api.remove(PODS.path("one", SYSTEM))
    assert await uninstalled(api)


def giving_back(api: Api, ready: int, *, observed: int = 1, node: Mapping[str, Any] = SOME_READY) -> None:
    """Two nodes; on the second one the pod that gives it back is not ready."""
    labels = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "give-back"}
    api.put(NODES.path("n2"), {"spec": {}, "status": node})
    api.put(PODS.path("g2", SYSTEM), {"metadata": {"labels": labels}, "spec": {"nodeName": "n2"}, "status": {}})
    status = {"observedGeneration": observed, "desiredNumberScheduled": 2, "numberReady": ready}
    api.put(GIVE_BACK, {"spec": {}, "status": status})


@pytest.mark.parametrize(
    ("ready", "observed", "late"), [(1, 1, "1 nodes"), (0, 1, "2 nodes"), (2, 0, "1 nodes")], ids=str
)
async def test_nothing_is_done_before_every_node_is_given_back(api: Api, ready: int, observed: int, late: str) -> None:
    giving_back(api, ready, observed=observed)
    before = dict(api.objects)
    with pytest.raises(Unavailable, match=f"{late} are not given back yet"):
        await uninstalled(api)
    assert api.objects == before
    giving_back(api, 2)
    assert len(await uninstalled(api)) == 6


async def test_a_node_that_is_away_is_named_and_not_waited_for(api: Api) -> None:
    giving_back(api, 1, node=UNREADY)
    first, *_ = await uninstalled(api)
    assert first == "nodes/n2: not ready, its pods keep their limits until it is booted anew"


async def test_who_may_not_see_how_far_it_is_stops(api: Api) -> None:
    api.refuse[("GET", GIVE_BACK)] = 403
    with pytest.raises(Unavailable, match="uninstall: GET"):
        await uninstalled(api)


async def test_tide_pools_let_go_of_their_nodes_and_are_let_go_of(api: Api) -> None:
    marks = marks_of("tide_offline", "green", {"pool": "green"}, (), SideTaints())
    note = {
        CHANGE: NodeChange(pool="green", to="tide_online", since=datetime(2026, 1, 1, tzinfo=UTC)).model_dump_json()
    }
    taints = [FOREIGN, *({"key": one.key, "value": one.value, "effect": one.effect} for one in marks.taints)]
    api.put(NODES.path("n1"), {"metadata": {"name": "n1", "labels": dict(marks.labels)}, "spec": {"taints": taints}})
    closed = {"name": "n3", "labels": {"pool": "green"}, "annotations": note}
    api.put(NODES.path("n3"), {"metadata": closed, "spec": {"taints": taints[1:]}})
    spec = {"nodeConfigs": {"nodeSelector": {"pool": "green"}}}
    meta = {"name": "green", "finalizers": ["example.org/mine", FINALIZER]}
    api.put(POOLS.path("green"), {"metadata": meta, "spec": spec})
    said = await uninstalled(api)
    assert "nodes/n1: marks of tide pool green removed" in said
    for name, left in (("n1", [FOREIGN]), ("n3", None)):
        node = api.objects[NODES.path(name)]
        assert (node["metadata"]["labels"], node["spec"].get("taints")) == ({"pool": "green"}, left)
        assert not node["metadata"].get("annotations")
    assert api.objects[POOLS.path("green")]["metadata"]["finalizers"] == ["example.org/mine"]


class RehearsedFake(RehearsedKube, FakeKube):
    """A dry run without a wire."""


async def test_a_dry_run_says_the_same_and_sends_nothing_that_stays(api: Api) -> None:
    before, said = copy.deepcopy(api.objects), list[str]()
    await clear_cluster(RehearsedFake(api), SYSTEM, said.append)
    assert api.objects == before
    assert said
    real: list[str] = []
    await clear_cluster(FakeKube(api), SYSTEM, real.append)
    assert (said, api.objects == before) == (real, False)
