"""Objects in memory, and those of the client over HTTP, keep to what Sublet relies on of an API server (measured:
docs/facts/kubernetes.md#eviction-measured).
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kube_api import Api, serving
from present import present

from shared.adapters.clock import LoopClock
from shared.adapters.kube.client import Kube
from shared.adapters.kube.objects import KubeObjects
from shared.core.api_kind import CNCS, CNRS, LEASES, NODE_METRICS, NODES, POD_RESIZES, PODS, ApiKind
from shared.errors import Conflict, Refused, Unavailable
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import ObjectMirror, Objects


class InMemory:
    """The port in memory."""

    def __init__(self) -> None:
        self.port = MemoryObjects(LoopClock())
        self.go_away, self.come_back = self.port.go_offline, self.port.go_online

    def put(self, kind: ApiKind, document: dict[str, Any]) -> None:
        self.port.put(kind, document)

    def drop(self, kind: ApiKind, name: str) -> None:
        self.port.drop(kind, name)

    async def close(self) -> None:
        """Nothing is open."""


class OverHttp:
    """The port over the client, real HTTP and a server."""

    def __init__(self, api: Api, kubeconfig: Path) -> None:
        self.api, self.kube = api, Kube(kubeconfig)
        self.port = KubeObjects(self.kube, LoopClock(), manager="test")
        self.go_away = api.go_away

    def put(self, kind: ApiKind, document: dict[str, Any]) -> None:
        meta = document["metadata"]
        self.api.put(kind.path(meta["name"], meta.get("namespace", "default")), document)

    def drop(self, kind: ApiKind, name: str) -> None:
        self.api.remove(kind.path(name, "default"))

    def come_back(self) -> None:
        self.api.away = False

    async def close(self) -> None:
        await self.kube.close()


@pytest.fixture(params=["in memory", "over HTTP"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "in memory":
        yield InMemory()
        return
    async with serving(api := Api(), tmp_path) as kubeconfig:
        there = OverHttp(api, kubeconfig)
        yield there
        await there.close()


@pytest.fixture
def server(place: InMemory | OverHttp) -> Objects:
    return place.port


def named(name: str, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **rest}


def name_of(document: Mapping[str, Any]) -> str:
    return str(document["metadata"]["name"])


async def soon(true: Callable[..., Any]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def mirroring(mirror: ObjectMirror[Any]) -> AsyncIterator[Any]:
    task = asyncio.create_task(mirror.run())
    try:
        await soon(lambda: mirror.age_s is not None)
        yield mirror
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_what_is_not_there_is_none_and_is_not_made_by_a_patch(server: Objects) -> None:
    assert await server.get(CNCS, "n1") is None
    assert await server.patch(CNCS, named("n1", spec={"a": 1})) is None
    assert await server.get(CNCS, "n1") is None
    await server.delete(CNCS, "n1", uid="any")


async def test_a_name_is_created_once(server: Objects) -> None:
    made = await server.create(CNCS, named("n1"))
    assert made["metadata"]["uid"]
    with pytest.raises(Conflict, match="already exists"):
        await server.create(CNCS, named("n1"))


async def test_spec_and_status_are_written_apart(server: Objects) -> None:
    made = await server.create(CNCS, named("n1", spec={"a": 1}, status={"b": 1}))
    assert "status" not in made
    after = present(await server.patch(CNCS, named("n1", spec={"a": 2}, status={"b": 2})))
    assert (after["spec"], after.get("status")) == ({"a": 2}, None)
    after = present(await server.patch(CNCS, named("n1", spec={"a": 3}, status={"b": 3}), status=True))
    assert (after["spec"], after["status"]) == ({"a": 2}, {"b": 3})
    assert after["metadata"]["generation"] == 2


async def test_a_merge_patch_joins_mappings_replaces_lists_and_drops_nulls(server: Objects) -> None:
    await server.create(CNCS, named("n1", spec={"a": {"x": 1, "y": 2}, "l": [1, 2]}))
    after = present(await server.patch(CNCS, named("n1", spec={"a": {"x": None, "z": 3}, "l": [4]})))
    assert after["spec"] == {"a": {"y": 2, "z": 3}, "l": [4]}


async def test_a_stale_resource_version_is_a_conflict_and_changes_nothing(server: Objects) -> None:
    made = await server.create(LEASES, named("l", spec={"holder": "a"}))
    stale = made["metadata"]["resourceVersion"]
    await server.patch(LEASES, named("l", spec={"holder": "b"}))
    with pytest.raises(Conflict, match="modified"):
        await server.patch(LEASES, {"metadata": {"name": "l", "resourceVersion": stale}, "spec": {"holder": "c"}})
    assert present(await server.get(LEASES, "l"))["spec"] == {"holder": "b"}


async def test_a_patch_meets_its_uid_alone(server: Objects) -> None:
    made = await server.create(CNCS, named("n1", spec={"a": 1}))
    with pytest.raises(Refused, match=r"metadata\.uid"):
        await server.patch(CNCS, {"metadata": {"name": "n1", "uid": "another"}, "spec": {"a": 2}})
    assert present(await server.get(CNCS, "n1"))["spec"] == {"a": 1}
    uid = made["metadata"]["uid"]
    after = present(await server.patch(CNCS, {"metadata": {"name": "n1", "uid": uid}, "spec": {"a": 2}}))
    assert (after["metadata"]["uid"], after["spec"]) == (uid, {"a": 2})


async def test_a_pod_is_resized_through_its_subresource(place: InMemory | OverHttp, server: Objects) -> None:
    place.put(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}})
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    body = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": containers}}
    assert await server.patch(POD_RESIZES, body | {"metadata": {"name": "q", "namespace": "default"}}) is None
    await server.patch(POD_RESIZES, body)
    assert present(await server.get(PODS, "p"))["spec"]["containers"] == containers


async def test_a_patch_that_changes_nothing_makes_no_new_version(server: Objects) -> None:
    made = await server.create(CNCS, named("n1", spec={"a": 1}))
    after = present(await server.patch(CNCS, named("n1", spec={"a": 1})))
    assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_delete_meets_its_uid_alone(server: Objects) -> None:
    made = await server.create(CNCS, named("n1"))
    await server.delete(CNCS, "n1", uid="another")
    assert await server.get(CNCS, "n1") is not None
    await server.delete(CNCS, "n1", uid=made["metadata"]["uid"])
    await server.delete(CNCS, "n1", uid=made["metadata"]["uid"])
    assert await server.get(CNCS, "n1") is None


async def test_a_list_is_selected_by_the_server(place: InMemory | OverHttp, server: Objects) -> None:
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "n1")):
        place.put(PODS, named(name, spec={"nodeName": node}))
    assert [name_of(pod) for pod in await server.list(PODS, fields="spec.nodeName=n1")] == ["a", "c"]
    assert len(await server.list(PODS)) == 3
    assert await server.list(NODES) == []


def taint(key: str, **rest: Any) -> dict[str, str]:
    return {"key": key, "effect": "NoSchedule", **rest}


async def test_who_applies_has_his_own_entries_and_leaves_those_of_others(server: Objects) -> None:
    await server.apply(CNRS, named("n1", spec={"taints": [taint("a", value="1")]}), manager="one")
    await server.apply(CNRS, named("n1", spec={"taints": [taint("b")], "nodeResourceProperties": []}), manager="two")
    after = await server.apply(CNRS, named("n1", spec={"taints": [taint("c")]}), manager="one")
    assert sorted(row["key"] for row in after["spec"]["taints"]) == ["b", "c"]
    after = await server.apply(CNRS, named("n1"), manager="one")
    assert after["spec"]["taints"] == [taint("b")]


async def test_what_two_have_applied_stays_until_both_have_let_it_go(server: Objects) -> None:
    for manager in ("one", "two"):
        await server.apply(CNRS, named("n1", spec={"taints": [taint("a")]}), manager=manager)
    after = await server.apply(CNRS, named("n1"), manager="one")
    assert after["spec"]["taints"] == [taint("a")]
    after = await server.apply(CNRS, named("n1"), manager="two")
    assert not after.get("spec", {}).get("taints")


async def test_what_nobody_applied_is_not_taken_away_by_applying(server: Objects) -> None:
    await server.create(CNRS, named("n1", spec={"taints": [taint("by-hand")]}))
    await server.apply(CNRS, named("n1", spec={"taints": [taint("a")]}), manager="one")
    after = await server.apply(CNRS, named("n1"), manager="one")
    assert after["spec"]["taints"] == [taint("by-hand")]


async def test_a_status_is_applied_apart_and_makes_no_object(server: Objects) -> None:
    rows = [{"type": "X", "status": "True"}]
    with pytest.raises(Refused, match="not found"):
        await server.apply(CNRS, named("n1", status={"conditions": rows}), manager="one", status=True)
    await server.apply(CNRS, named("n1", spec={"taints": [taint("a")]}), manager="one")
    await server.apply(CNRS, named("n1", status={"conditions": rows}), manager="one", status=True)
    after = await server.apply(CNRS, named("n1", spec={"taints": []}), manager="one")
    assert (after.get("spec", {}).get("taints") or [], after["status"]) == ([], {"conditions": rows})


async def test_what_another_wrote_into_a_status_stays_beside_what_is_applied_until_it_is_patched_away(
    place: InMemory | OverHttp, server: Objects
) -> None:
    theirs = {
        "nodeMetric": {"nodeUsage": {"a": 1}, "numaUsages": [1]},
        "podsMetric": [1, 2],
        "prodPeakMetric": {"b": 1},
    }
    place.put(NODE_METRICS, named("n1", spec={"metricCollectPolicy": {"reportIntervalSeconds": 30}}, status=theirs))
    ours = {"nodeMetric": {"nodeUsage": {"a": 2}}, "podsMetric": [3]}
    after = await server.apply(NODE_METRICS, named("n1", status=ours), manager="one", status=True)
    assert after["spec"] == {"metricCollectPolicy": {"reportIntervalSeconds": 30}}
    assert after["status"] == {"nodeMetric": {"nodeUsage": {"a": 2}, "numaUsages": [1]}, "podsMetric": [3],
                               "prodPeakMetric": {"b": 1}}  # fmt: skip
    gone = {"nodeMetric": {"numaUsages": None}, "prodPeakMetric": None}
    assert present(await server.patch(NODE_METRICS, named("n1", status=gone), status=True))["status"] == ours


async def test_who_applies_says_who_owns_the_object(server: Objects) -> None:
    for uid in ("u-1", "u-2"):
        owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid}
        document = {"metadata": {"name": "n1", "ownerReferences": [owner]}, "spec": {"a": 1}}
        made = await server.apply(CNRS, document, manager="one")
        assert made["metadata"]["ownerReferences"] == [owner]
        assert made["metadata"]["uid"]


async def test_the_same_applied_again_makes_no_new_version(server: Objects) -> None:
    first = await server.apply(CNRS, named("n1", spec={"taints": [taint("a")]}), manager="one")
    again = await server.apply(CNRS, named("n1", spec={"taints": [taint("a")]}), manager="one")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_mirror_knows_nothing_before_its_first_list_and_then_follows(server: Objects) -> None:
    seen = []
    mirror = server.mirror(NODES, name_of, lambda: seen.append(1))
    with pytest.raises(Unavailable):
        _ = mirror.objects
    assert mirror.age_s is None
    async with mirroring(mirror):
        assert list(mirror.objects.values()) == []
        before = len(seen)
        made = await server.create(NODES, named("n1"))
        await soon(lambda: list(mirror.objects.values()) == ["n1"])
        assert len(seen) > before
        await server.delete(NODES, "n1", uid=made["metadata"]["uid"])
        await soon(lambda: not mirror.objects)


async def test_a_mirror_is_of_a_namespace_and_of_labels_where_they_are_named(
    place: InMemory | OverHttp, server: Objects
) -> None:
    def lease(name: str, namespace: str, **labels: Any) -> dict[str, dict[str, dict[str, str] | str]]:
        return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}

    place.put(LEASES, lease("a", "one", x="1"))
    place.put(LEASES, lease("b", "two", x="1"))
    spaced = server.mirror(LEASES, name_of, lambda: None, namespace="one")
    labelled = server.mirror(LEASES, name_of, lambda: None, labels="x=1")
    async with mirroring(spaced), mirroring(labelled):
        place.put(LEASES, lease("c", "one", x="2"))
        place.put(LEASES, lease("d", "two", x="1"))
        await soon(lambda: sorted(spaced.objects.values()) == ["a", "c"])
        await soon(lambda: sorted(labelled.objects.values()) == ["a", "b", "d"])


async def test_a_mirror_tells_of_each_object_that_comes_changes_and_goes(
    place: InMemory | OverHttp, server: Objects
) -> None:
    index: dict[str, str] = {}

    def each(uid: str, name: str | None) -> None:
        index.pop(uid, None)
        if name is not None:
            index[uid] = name

    place.put(NODES, {"metadata": {"name": "a"}})
    place.put(NODES, {"metadata": {"name": "b"}})
    async with mirroring(server.mirror_each(NODES, name_of, each)) as mirror:
        await soon(lambda: sorted(index.values()) == ["a", "b"])
        place.put(NODES, {"metadata": {"name": "c"}})
        await soon(lambda: sorted(index.values()) == ["a", "b", "c"])
        place.drop(NODES, "a")
        await soon(lambda: sorted(index.values()) == ["b", "c"])
        assert index == mirror.objects


async def test_a_mirror_of_one_object_knows_no_other(place: InMemory | OverHttp, server: Objects) -> None:
    place.put(LEASES, {"metadata": {"name": "a", "namespace": "two"}})
    place.put(LEASES, {"metadata": {"name": "b", "namespace": "one"}})
    async with mirroring(server.mirror_one(LEASES, "a", name_of, lambda: None, namespace="one")) as mirror:
        assert not mirror.objects
        place.put(LEASES, {"metadata": {"name": "a", "namespace": "one"}})
        place.put(LEASES, {"metadata": {"name": "c", "namespace": "one"}})
        await soon(lambda: list(mirror.objects.values()) == ["a"])


async def test_an_object_that_cannot_be_read_keeps_its_last_good_state_and_ends_nothing(
    place: InMemory | OverHttp, server: Objects
) -> None:
    def told(document: Mapping[str, Any]) -> str:
        return str(document["metadata"]["labels"]["told"])

    mirror = server.mirror(NODES, told, lambda: None)
    async with mirroring(mirror):
        place.put(NODES, {"metadata": {"name": "n1", "uid": "u-1", "labels": {"told": "one"}}})
        await soon(lambda: list(mirror.objects.values()) == ["one"])
        place.put(NODES, {"metadata": {"name": "n1", "uid": "u-1", "labels": {}}})
        await soon(lambda: len(mirror.unread) == 1)
        assert list(mirror.objects.values()) == ["one"]
        place.put(NODES, {"metadata": {"name": "n2", "labels": {"told": "two"}}})
        await soon(lambda: sorted(mirror.objects.values()) == ["one", "two"])
        place.put(NODES, {"metadata": {"name": "n1", "uid": "u-1", "labels": {"told": "three"}}})
        await soon(lambda: not mirror.unread)


async def test_without_a_server_calls_fail_and_mirrors_keep_what_they_have(
    place: InMemory | OverHttp, server: Objects
) -> None:
    await server.create(NODES, named("n1"))
    async with mirroring(server.mirror(NODES, name_of, lambda: None)) as mirror:
        place.go_away()
        place.drop(NODES, "n1")
        for call in (
            server.get(NODES, "n1"),
            server.create(NODES, named("n2")),
            server.list(NODES),
            server.apply(NODES, named("n2"), manager="one"),
        ):
            with pytest.raises(Unavailable):
                await call
        assert list(mirror.objects.values()) == ["n1"]
        assert mirror.age_s is not None
        place.come_back()
        await soon(lambda: not mirror.objects)
