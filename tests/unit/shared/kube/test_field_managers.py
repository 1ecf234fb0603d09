"""Every write to the API server bears the name of the service that makes it: `managedFields` tell them apart."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from kube_api import Api, FakeKube, serving

from services.central.adapters.cnr_conditions import MANAGER as CENTRAL
from services.central.adapters.node_marks import NodeMarks
from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.nodes import node_of
from services.central.main import PLAN
from shared.adapters.clock import LoopClock
from shared.adapters.kube import client as kube_client
from shared.adapters.kube.client import Kube
from shared.adapters.kube.evictor import MANAGER as EVICTOR
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.kube.node import MANAGER as REPORTER
from shared.adapters.kube.node import KubeNode, remove_offer
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.kube.taints import KubeTaints
from shared.app import Context
from shared.contracts.kube.taint import Taint
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU, Pod
from shared.core.api_kind import CNCS, CNRS, KCCS, NODES, PODS
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings
from shared.wire import Wire
from sublet.cluster.uninstall import FINALIZERS, uninstall_from_cluster
from sublet.cluster.uninstall import MANAGER as UNINSTALL
from sublet.doctor.cluster.nodes import OWN_MANAGERS

NODE, CNR = NODES.path("n1"), CNRS.path("n1")
PRESSURE = Taint.model_validate({"key": "node.katalyst.kubewharf.io/CPUPressure", "effect": "NoSchedule"})


@pytest.fixture
def api() -> Api:
    api = Api()
    api.put(NODE, {"spec": {}, "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}})
    return api


@pytest.fixture
def kube(api: Api) -> FakeKube:
    return FakeKube(api)


def offer(cpu_millis: int) -> dict[str, Any]:
    amounts = {TUTORIAL_RECLAIMED_CPU: str(cpu_millis)}
    return {**CNRS.head, "metadata": {"name": "n1"}, "status": {"resourceAllocatable": amounts}}


async def test_the_name_is_a_parameter_of_every_request_that_writes(tmp_path: Path) -> None:
    async with serving(api := Api(), tmp_path) as kubeconfig:
        kube = Kube(kubeconfig)
        collection = PODS.collection("default")
        path = f"{collection}/one"
        await kube.create(collection, {"metadata": {"name": "one"}}, manager="first")
        await kube.merge(path, {"spec": {"a": 1}}, manager="second")
        await kube.apply(path, {"spec": {"b": 1}}, manager="third")
        await kube.close()
    assert api.writers == {(collection, "first"), (path, "second"), (path, "third")}


async def test_the_reporter_writes_node_and_cnr_under_its_name(api: Api, kube: FakeKube) -> None:
    await KubeNode(kube, "n1", dict).write(offer(4000))
    assert api.writers == {(f"{NODE}/status", REPORTER), (CNR, REPORTER), (f"{CNR}/status", REPORTER)}


async def test_the_evictor_taints_and_evicts_under_its_name(api: Api, kube: FakeKube) -> None:
    api.put(CNR, {"spec": {"taints": [{"key": PRESSURE.key, "effect": "NoExecute"}]}})  # to be taken out: a patch
    pod = Pod(namespace="default", name="web", uid="aa")
    api.run_pod("web", "aa")
    taints = KubeTaints(kube, "n1", KubeObjects(kube, LoopClock(), manager=EVICTOR))
    await taints.write([PRESSURE])
    await taints.show([PRESSURE])
    await KubeEvictor(kube).evict(pod, grace_s=1)
    eviction = f"{PODS.path('web', 'default')}/eviction"
    assert api.writers == {(NODE, EVICTOR), (CNR, EVICTOR), (eviction, EVICTOR)}


def test_central_leads_and_keeps_its_objects_under_its_name(
    api: Api, virtual: Virtual, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_client, "Kube", lambda _kubeconfig: FakeKube(api))

    async def run() -> None:
        clock = LoopClock()
        wire = Wire(MemoryBus(), clock, node="hub", service="central")
        common = CommonSettings(substrate="kubernetes", state_dir=tmp_path)
        app = PLAN.build(Context(wire, clock, common, {}))
        task = asyncio.create_task(app.run())
        await asyncio.sleep(10)
        assert app.state()["cluster"]["leader"]["leading"]
        api.put(NODE, api.objects[NODE] | {"metadata": api.objects[NODE]["metadata"] | {"labels": {"pool": "a"}}})
        await asyncio.sleep(60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await app.close()

    virtual(run())
    assert {CNRS.collection(), CNCS.collection(), CNR} <= {path for path, _ in api.writers}
    assert {manager for _, manager in api.writers} == {CENTRAL}


async def test_an_uninstall_lets_go_of_configuration_objects_under_its_own_name(api: Api, kube: FakeKube) -> None:
    path = KCCS.path("one", "default")
    api.put(path, {"metadata": {"namespace": "default", "finalizers": [f"{FINALIZERS[0]}x"]}})
    await uninstall_from_cluster(kube, LoopClock(), "sublet-system", wait_s=0, say=lambda _line: None)
    assert api.writers == {(path, UNINSTALL)}


async def test_doctor_knows_all_who_write_reclaimed_resources_to_a_node(api: Api, kube: FakeKube) -> None:
    await KubeNode(kube, "n1", dict).write(offer(4000))
    marks = NodeMarks(KubeObjects(kube, LoopClock(), manager=CENTRAL))
    await marks.withdraw(node_of(api.objects[NODE]), Judged("lost", "silent"))
    await remove_offer(kube, "n1")
    assert {manager for path, manager in api.writers if path == f"{NODE}/status"} == set(OWN_MANAGERS)
