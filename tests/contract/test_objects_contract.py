"""Objects in memory keep to what Sublet relies on of an API server (measured: notes/reliability.md section 2)."""

import asyncio
import contextlib

import pytest

from shared.adapters.clock import LoopClock
from shared.core.api_kind import CNCS, LEASES, NODES
from shared.errors import Conflict, Unavailable
from shared.fakes.memory_objects import MemoryObjects


@pytest.fixture
def server():
    return MemoryObjects(LoopClock())


def named(name, **rest):
    return {"metadata": {"name": name}, **rest}


async def test_what_is_not_there_is_none_and_is_not_made_by_a_patch(server):
    assert await server.get(CNCS, "n1") is None
    assert await server.patch(CNCS, named("n1", spec={"a": 1})) is None
    assert await server.get(CNCS, "n1") is None


async def test_a_name_is_created_once(server):
    made = await server.create(CNCS, named("n1"))
    assert made["metadata"]["uid"]
    with pytest.raises(Conflict, match="already exists"):
        await server.create(CNCS, named("n1"))


async def test_spec_and_status_are_written_apart(server):
    made = await server.create(CNCS, named("n1", spec={"a": 1}, status={"b": 1}))
    assert "status" not in made
    after = await server.patch(CNCS, named("n1", spec={"a": 2}, status={"b": 2}))
    assert (after["spec"], after.get("status")) == ({"a": 2}, None)
    after = await server.patch(CNCS, named("n1", spec={"a": 3}, status={"b": 3}), status=True)
    assert (after["spec"], after["status"]) == ({"a": 2}, {"b": 3})
    assert after["metadata"]["generation"] == 2


async def test_a_merge_patch_joins_mappings_replaces_lists_and_drops_nulls(server):
    await server.create(CNCS, named("n1", spec={"a": {"x": 1, "y": 2}, "l": [1, 2]}))
    after = await server.patch(CNCS, named("n1", spec={"a": {"x": None, "z": 3}, "l": [4]}))
    assert after["spec"] == {"a": {"y": 2, "z": 3}, "l": [4]}


async def test_a_stale_resource_version_is_a_conflict_and_changes_nothing(server):
    made = await server.create(LEASES, named("l", spec={"holder": "a"}))
    stale = made["metadata"]["resourceVersion"]
    await server.patch(LEASES, named("l", spec={"holder": "b"}))
    with pytest.raises(Conflict, match="modified"):
        await server.patch(LEASES, {"metadata": {"name": "l", "resourceVersion": stale}, "spec": {"holder": "c"}})
    assert (await server.get(LEASES, "l"))["spec"] == {"holder": "b"}


async def test_a_patch_that_changes_nothing_makes_no_new_version(server):
    made = await server.create(CNCS, named("n1", spec={"a": 1}))
    after = await server.patch(CNCS, named("n1", spec={"a": 1}))
    assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_delete_meets_its_uid_alone(server):
    made = await server.create(CNCS, named("n1"))
    await server.delete(CNCS, "n1", uid="another")
    assert await server.get(CNCS, "n1") is not None
    await server.delete(CNCS, "n1", uid=made["metadata"]["uid"])
    await server.delete(CNCS, "n1", uid=made["metadata"]["uid"])
    assert await server.get(CNCS, "n1") is None


async def test_a_mirror_knows_nothing_before_its_first_list_and_then_follows(server):
    seen = []
    mirror = server.mirror(NODES, lambda d: d["metadata"]["name"], lambda: seen.append(1))
    with pytest.raises(Unavailable):
        _ = mirror.objects
    assert mirror.age_s is None
    task = asyncio.create_task(mirror.run())
    await asyncio.sleep(0)
    assert list(mirror.objects.values()) == []
    await server.create(NODES, named("n1"))
    assert (list(mirror.objects.values()), len(seen)) == (["n1"], 2)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_without_a_server_calls_fail_and_mirrors_keep_what_they_have(server):
    await server.create(NODES, named("n1"))
    mirror = server.mirror(NODES, lambda d: d["metadata"]["name"], lambda: None)
    task = asyncio.create_task(mirror.run())
    await asyncio.sleep(0)
    server.go_offline()
    server.drop(NODES, "n1")
    for call in (server.get(NODES, "n1"), server.create(NODES, named("n2")), server.list(NODES)):
        with pytest.raises(Unavailable):
            await call
    assert list(mirror.objects.values()) == ["n1"]
    assert mirror.age_s is not None
    server.go_online()
    assert list(mirror.objects.values()) == []
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
