"""Pods with CPUs of their own, from advice to the cgroup files, in virtual time on the tutorial's machine."""

import asyncio
import json
from pathlib import Path

import pytest
from qrm_world import NODE, Lease, Node, Run, conditions, pools

from shared.contracts.pod import Container, Pod
from shared.core.cgroups.layout import pod_group
from shared.core.cpus.cpuset import CpuSet

MEMORY = "katalyst.kubewharf.io/memory_enhancement"
CPU = "katalyst.kubewharf.io/cpu_enhancement"
BOUND = {MEMORY: json.dumps({"numa_binding": "true"})}
EXCLUSIVE = {MEMORY: json.dumps({"numa_binding": "true", "numa_exclusive": "true"})}


def pod(name: str, qos: str, millis: int = 0, **annotations: str) -> Pod:
    return Pod(uid=name.encode().hex(), name=name, qos=qos, annotations=annotations,
               containers=(Container(name="main", cpu_request_millis=millis),))  # fmt: skip


def run_pods(node: Node, *running: Pod) -> None:
    for one in running:
        node.plain.add(pod_group(one))
        node.plain.add(f"{pod_group(one)}/main")
    node.pods.known = [*node.pods.known, *running]


def cpus_of(node: Node, one: Pod) -> str:
    return node.plain.get(f"{pod_group(one)}/main")


def test_a_dedicated_pod_gets_its_cpus_and_the_reclaimed_pool_gives_them(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            db, web = pod("db", "dedicated_cores", 4000, **BOUND), pod("web", "shared_cores", 1000)
            run_pods(node, db, web)
            allocation = await node.hear(node.advice())
            assert cpus_of(node, db) == "0-1,24-25"
            assert node.plain.get(f"{pod_group(db)}/main", "cpuset.mems") == "0"
            assert cpus_of(node, web) == pools(allocation)["share"]
            sets = {name: CpuSet.parse(text) for name, text in pools(allocation).items()}
            assert (len(sets["dedicated"]), len(sets["share"]), len(sets["reclaim"])) == (4, 6, 38)
            assert sum(map(len, sets.values())) == 48
            assert allocation.reclaimed_cpu_millis == 38_000
            assert {p.name: p.pool for p in allocation.pods} == {"db": "dedicated", "web": "share"}
            assert (allocation.status, conditions(allocation)) == ("applied", {})

    virtual(story())


def test_it_keeps_them_while_sizes_change_and_over_a_restart(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        db, late = pod("db", "dedicated_cores", 4000, **BOUND), pod("a-late", "dedicated_cores", 4000, **BOUND)
        async with Node(tmp_path, Lease()) as node:
            run_pods(node, db)
            await node.hear(node.advice())
            await node.hear(node.advice(20, 28))
            assert cpus_of(node, db) == "0-1,24-25"
        again = Node(tmp_path, Lease(left=5.0), plain=node.plain)
        again.pods.known = [db]
        async with again:
            run_pods(again, late)
            await again.hear(again.advice())
            assert cpus_of(again, db) == "0-1,24-25"
            assert cpus_of(again, late) == "2-3,26-27"

    virtual(story())


def test_without_its_checkpoint_qrm_takes_over_what_the_kernel_says(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        db = pod("db", "dedicated_cores", 2000, **BOUND)
        async with Node(tmp_path, Lease()) as node:
            run_pods(node, db)
            await node.hear(node.advice())
        for group in (pod_group(db), f"{pod_group(db)}/main"):
            node.plain.set(group, "cpuset.cpus", "7,31")
        (tmp_path / "state/checkpoint.json").write_text("{")
        again = Node(tmp_path, Lease(), plain=node.plain)
        again.pods.known = [db]
        async with again:
            assert "set aside" in conditions(again.last)["CheckpointRefused"]
            await again.hear(again.advice())
            assert cpus_of(again, db) == "7,31"

    virtual(story())


def test_pods_that_cannot_be_listed_at_the_start_lose_nothing(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        db, late = pod("db", "dedicated_cores", 4000, **BOUND), pod("a-late", "dedicated_cores", 4000, **BOUND)
        async with Node(tmp_path, Lease()) as node:
            run_pods(node, db)
            await node.hear(node.advice())
        again = Node(tmp_path, Lease(left=50.0), plain=node.plain)
        again.pods.broken = True
        async with again:
            await asyncio.sleep(4)
            assert "PodsUnavailable" in conditions(again.last)
            again.pods.broken = False
            again.pods.known = [db]
            run_pods(again, late)
            await again.hear(again.advice())
            assert (cpus_of(again, db), cpus_of(again, late)) == ("0-1,24-25", "2-3,26-27")

    virtual(story())


def test_what_cannot_be_met_is_named_and_nothing_else_changes(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            before = pools(await node.hear(node.advice()))
            greedy = pod("greedy", "dedicated_cores", 60_000, **BOUND)
            loose = pod("loose", "dedicated_cores", 1000)
            torn = pod("torn", "shared_cores", 1000, **{CPU: json.dumps({"cpuset_pool": "reclaim"})})
            run_pods(node, greedy, loose, torn)
            after = await node.hear(node.advice())
            assert pools(after) == before
            words = conditions(after)["PodUnplaced"]
            assert "default/greedy: 60 CPUs" in words
            assert "default/loose: dedicated_cores without numa_binding" in words
            assert "default/torn: cpuset_pool 'reclaim'" in words
            assert cpus_of(node, greedy) == cpus_of(node, torn) == before["share"]
            assert node.app.health().ok

    virtual(story())


def test_preferences_that_cannot_be_met_are_a_condition_and_the_node_is_well(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            spec = {"scheduling.koordinator.sh/resource-spec": json.dumps({"preferredCPUBindPolicy": "FullPCPUs"})}
            odd = pod("odd", "dedicated_cores", 3000, **spec).model_copy(
                update={"labels": {"koordinator.sh/qosClass": "LSR"}}
            )
            run_pods(node, odd)
            allocation = await node.hear(node.advice())
            assert cpus_of(node, odd) == "0-1,24"
            assert list(conditions(allocation)) == ["PodPlacedOtherwise"]
            assert "default/odd: preferredCPUBindPolicy FullPCPUs" in conditions(allocation)["PodPlacedOtherwise"]
            assert node.app.health().ok

    virtual(story())


def test_annotations_that_are_no_json_leave_the_pod_in_its_pool(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            broken = pod("broken", "shared_cores", 1000, **{CPU: "{", MEMORY: "{"})
            run_pods(node, broken)
            allocation = await node.hear(node.advice())
            assert cpus_of(node, broken) == pools(allocation)["share"]

    virtual(story())


def test_an_exclusive_pod_has_a_node_bound_and_named_pools_have_theirs(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            big = pod("big", "dedicated_cores", 4000, **EXCLUSIVE)
            bound = pod("bound", "shared_cores", 2000, **BOUND)
            flink = pod("flink", "shared_cores", 3000, **{CPU: json.dumps({"cpuset_pool": "flink"})})
            batch = pod("batch", "reclaimed_cores", 1000, **BOUND)
            run_pods(node, big, bound, flink, batch)
            allocation = await node.hear(node.advice())
            assert cpus_of(node, big) == "0-11,24-35"
            assert cpus_of(node, bound) == "12,36"
            assert cpus_of(node, flink) == "13-14,37"
            found = pools(allocation)
            assert found["share-NUMA1"] == "12,36"
            assert found["flink"] == "13-14,37"
            assert cpus_of(node, batch) == found["reclaim"]
            assert sum(len(CpuSet.parse(text)) for text in found.values()) == 48
            assert allocation.node == NODE

    virtual(story())


def test_koordinators_lsr_means_cpus_of_ones_own(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            db = pod("db", "dedicated_cores", 2000).model_copy(update={"labels": {"koordinator.sh/qosClass": "LSR"}})
            run_pods(node, db)
            await node.hear(node.advice())
            assert cpus_of(node, db) == "0,24"

    virtual(story())


def test_a_new_shared_pod_may_ramp_up_on_the_reclaimed_cpus(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=600, ramp_up_s=30, period_s=2) as node:
            old, new = pod("old", "shared_cores", 1000), pod("new", "shared_cores", 1000)
            run_pods(node, old)
            await node.hear(node.advice(valid_for_s=600))
            await asyncio.sleep(33)
            printed = pools(node.last)
            assert printed == {"share": "11,22-23,35,46-47", "reclaim": "0-10,12-21,24-34,36-45"}
            run_pods(node, new)
            await asyncio.sleep(1)
            assert (cpus_of(node, new), cpus_of(node, old)) == ("0-47", printed["share"])
            assert pools(node.last) == printed | {"ramp-up": "0-47"}
            await asyncio.sleep(32)
            assert cpus_of(node, new) == cpus_of(node, old) == printed["share"]
            assert pools(node.last) == printed

    virtual(story())


@pytest.mark.parametrize("migrate", [False, True])
def test_pages_move_with_a_bound_pod_only_where_that_is_wished(tmp_path: Path, virtual: Run, migrate: bool) -> None:
    async def story() -> None:
        async with Node(tmp_path, memory_migrate=migrate) as node:
            db, web = pod("db", "dedicated_cores", 4000, **BOUND), pod("web", "shared_cores", 1000)
            run_pods(node, db, web)
            groups = [pod_group(db), f"{pod_group(db)}/main", pod_group(web)]
            for group in groups:
                node.plain.set(group, "cpuset.memory_migrate", "0")
            await node.hear(node.advice())
            assert [node.plain.get(group, "cpuset.memory_migrate") for group in groups] == [
                str(int(migrate)), str(int(migrate)), "0",
            ]  # fmt: skip

    virtual(story())


def test_when_a_dedicated_pod_ends_its_cpus_go_back(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            db = pod("db", "dedicated_cores", 4000, **BOUND)
            run_pods(node, db)
            await node.hear(node.advice())
            node.pods.known = []
            allocation = await node.hear(node.advice())
            assert pools(allocation) == {"share": "11,22-23,35,46-47", "reclaim": "0-10,12-21,24-34,36-45"}

    virtual(story())


def test_at_the_floor_dedicated_pods_keep_what_they_have(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, Lease(), lease_s=10) as node:
            db = pod("db", "dedicated_cores", 4000, **BOUND)
            run_pods(node, db)
            await node.hear(node.advice())
            await asyncio.sleep(11)
            assert node.last.status == "floor"
            assert cpus_of(node, db) == "0-1,24-25"
            assert len(CpuSet.parse(pools(node.last)["reclaim"])) == 4

    virtual(story())
