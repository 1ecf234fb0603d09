"""Controllers that keep the same of the same objects share one mirror, and each is told of a change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from services.central.core.recommendation.objects.workloads import pod_of_workload
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.main import ClusterAccess, build_cluster
from services.central.settings import CentralSettings, LeaseSettings
from shared.adapters.clock import SystemClock
from shared.core.api_kind import PODS
from shared.core.node_mode import NodeSwitch
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import check
from shared.wire import Wire

Until = Callable[[Callable[[], object]], Awaitable[None]]
WEB = {
    "metadata": {"name": "web-5d-1", "namespace": "shop", "uid": "1", "labels": {"pod-template-hash": "5d"},
                 "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d"}]},
    "spec": {"containers": []}, "status": {"phase": "Running"},
}  # fmt: skip


class Counting(MemoryObjects):
    """Counts who asks for a mirror of all pods."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.kept = Counter[object]()

    def mirror(self, kind: Any, keep: Any, changed: Any, *, labels: str = "", namespace: str = "") -> Any:
        self.kept[keep] += kind == PODS
        return super().mirror(kind, keep, changed, labels=labels, namespace=namespace)


def leader(api: MemoryObjects) -> Leader:
    return Leader(api, api.clock, "one", LeaseSettings())


def keep_name(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


async def test_recommendation_autoscalers_and_profiles_hear_of_pods_once() -> None:
    api = Counting()
    on = {name: {"enabled": True} for name in ("recommendation", "vertical", "service_profiles")}
    settings = check(CentralSettings, {"kubernetes": on}, where="central").kubernetes
    wire = Wire(MemoryBus(), api.clock, node="hub", service="central")
    access = ClusterAccess(api, wire, _Nobody(), "one", _nothing)
    build_cluster(access, api.clock, settings, NodeSwitch())
    assert api.kept[pod_of_workload] == 1


async def test_everybody_is_told_and_others_have_their_own(until: Until) -> None:
    api, told = Counting(), Counter[str]()
    objects = LeaderObjects(api, leader(api))

    def hear(name: str) -> Callable[[], None]:
        return lambda: told.update([name])

    first, second = (objects.mirror(PODS, pod_of_workload, hear(name)) for name in ("first", "second"))
    labelled = objects.mirror(PODS, pod_of_workload, hear("labelled"), labels="a=b")
    other = objects.mirror(PODS, keep_name, hear("other"))
    assert first is second
    assert len({id(one) for one in (first, labelled, other)}) == 3
    task = asyncio.create_task(first.run())
    await until(lambda: told["second"])
    before = told.copy()
    api.put(PODS, WEB)
    await until(lambda: told["first"] > before["first"] and told["second"] > before["second"])
    assert (told["labelled"], told["other"]) == (0, 0)
    assert [pod.workload for pod in second.objects.values()] == ["web"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class _Nobody:
    """Evicts nobody."""

    async def evict(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("asked to evict")

    async def lookup(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("asked for a pod")


async def _nothing() -> None:
    """Nothing to close."""
