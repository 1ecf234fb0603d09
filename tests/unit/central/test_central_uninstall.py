"""What an uninstall takes out of a cluster: all that reporter, evictor and central have put there, and nothing else."""

import pytest
from kube_api import Api, FakeKube

from shared.adapters.clock import LoopClock
from shared.adapters.kube_node import KubeNode
from shared.adapters.kube_objects import KubeObjects
from shared.adapters.kube_taints import KubeTaints
from shared.contracts.pod import SEED_RECLAIMED_CPU, SEED_RECLAIMED_MEMORY
from shared.contracts.taint import Taint
from shared.core.api_kind import CNCS, CNRS, NODES, PODS
from shared.errors import Unavailable
from sublet.withdrawal import withdraw_from_cluster

FOREIGN = {"key": "example.org/mine", "effect": "NoSchedule"}
SYSTEM = "sublet-system"


@pytest.fixture
async def api():
    """A node on which everybody has written."""
    api = Api()
    kube = FakeKube(api)
    objects = KubeObjects(kube, LoopClock(), manager="sublet-central")
    api.put(NODES.path("n1"), {"spec": {"taints": [FOREIGN]}, "status": {"allocatable": {"cpu": "4"}}})
    pressure = Taint.model_validate({"key": "node.katalyst.kubewharf.io/CPUPressure", "effect": "NoSchedule"})
    amounts = {SEED_RECLAIMED_CPU: "4k", SEED_RECLAIMED_MEMORY: "1Gi"}
    document = {**CNRS.head, "metadata": {"name": "n1"}, "status": {"resourceAllocatable": amounts}}
    await KubeNode(kube, "n1", dict).write(document)
    taints = KubeTaints(kube, "n1", objects)
    await taints.write([pressure])
    await taints.show([pressure])
    rows = [{"type": "AgentReady", "status": "True", "reason": "AllAgentsReady"}]
    status = {"metadata": {"name": "n1"}, "status": {"conditions": rows}}
    await objects.apply(CNRS, status, manager="sublet-central", status=True)
    await objects.create(CNCS, {"metadata": {"name": "n1"}, "spec": {}})
    return api


async def uninstalled(api):
    said = []
    await withdraw_from_cluster(FakeKube(api), LoopClock(), SYSTEM, wait_s=0, say=said.append)
    return said


async def test_nothing_of_ours_is_left_and_all_else_is_as_it_was(api):
    assert len(await uninstalled(api)) == 4
    assert list(api.objects) == [NODES.path("n1")]
    node = api.objects[NODES.path("n1")]
    assert (node["spec"], node["status"]["allocatable"]) == ({"taints": [FOREIGN]}, {"cpu": "4"})
    assert await uninstalled(api) == []


@pytest.mark.parametrize(
    ("component", "words"),
    [
        ("node", "agents still run after 0 s in sublet-system: one; delete DaemonSet sublet-node"),
        ("central", "centrals still run after 0 s in sublet-system: one; delete Deployment sublet-central"),
    ],
)
async def test_nothing_is_taken_while_somebody_would_write_it_again(api, component, words):
    labels = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": component}
    api.put(PODS.path("one", SYSTEM), {"metadata": {"labels": labels}})
    before = dict(api.objects)
    with pytest.raises(Unavailable, match=words):
        await uninstalled(api)
    assert api.objects == before
    api.remove(PODS.path("one", SYSTEM))
    assert await uninstalled(api)
