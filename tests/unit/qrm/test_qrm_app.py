"""qrm at work, in virtual time, over plain cgroup files of the tutorial's machine."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from plain_cgroups import PlainCgroups
from qrm_world import (
    FLOOR,
    MEMORY,
    NODE,
    RECLAIMED,
    SHARED,
    TUTORIAL_NODE,
    Lease,
    Node,
    Run,
    conditions,
    pools,
    refusals,
)

from shared.contracts.advice import PoolAdvice, PoolSize
from shared.contracts.bus.subjects import state_subject
from shared.contracts.pod import Container, Pod
from shared.core.cpus.topology import Topology
from shared.errors import BadConfig


def test_the_quick_start_is_applied_cpu_by_cpu(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            idle = await node.hear(node.advice(4, 44))
            assert (node.sets(), idle.reclaimed_cpu_millis) == (("11,23,35,47", "0-10,12-22,24-34,36-46"), 44_000)
            one_pod = await node.hear(node.advice(6, 42))
            assert node.sets() == ("11,22-23,35,46-47", "0-10,12-21,24-34,36-45")
            assert (one_pod.status, one_pod.reclaimed_cpu_millis, one_pod.reclaimed_memory_bytes) == (
                "applied",
                42_000,
                MEMORY,
            )
            loaded = await node.hear(node.advice(8, 40))
            assert node.sets() == ("10-11,22-23,34-35,46-47", "0-9,12-21,24-33,36-45")
            assert pools(loaded) == {"share": node.sets()[0], "reclaim": node.sets()[1]}
            assert loaded.based_on == ("sample/3", "advice/3")
            assert (loaded.why[0].rule, loaded.why[0].numbers["reclaim"]) == ("reclaim-first", 40)
            assert node.app.health().ok

    virtual(story())


def test_before_any_advice_the_floor_is_in_force_and_nothing_is_offered(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            assert (node.last.status, pools(node.last)) == ("floor", FLOOR)
            assert (node.last.reclaimed_cpu_millis, node.last.reclaimed_memory_bytes) == (0, 0)
            assert not node.app.health().ok

    virtual(story())


def test_the_offer_is_told_by_numa_node_as_the_pool_lies(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            allocation = await node.hear(node.advice(40, 8))
            told = {part.numa: part.reclaimed_cpu_millis for part in allocation.reclaimed_numas or ()}
            assert told == {0: 4000, 1: 4000}
            assert sum(told.values()) == allocation.reclaimed_cpu_millis

    virtual(story())


def test_weights_and_the_memory_limit_are_set(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            allocation = await node.hear(node.advice(reclaimed_memory_limit_bytes=1 << 30))
            assert node.plain.get(RECLAIMED, "cpu.idle", "cpu") == "1"
            assert node.plain.get(SHARED, "cpu.shares", "cpu") == str(48 * 1024)
            assert node.plain.get("sublet", "cpu.idle", "cpu") == "1", "no tenant is here"
            assert node.plain.get(RECLAIMED, "memory.limit_in_bytes", "memory") == str(1 << 30)
            pool = allocation.pool("reclaim")
            assert pool is not None
            assert (pool.memory_limit_bytes, allocation.reclaimed_memory_bytes) == (1 << 30, 1 << 30)

    virtual(story())


def test_without_fresh_advice_the_sets_are_held_and_then_fall_to_the_floor(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=10) as node:
            await node.hear(node.advice(valid_for_s=5, reclaimed_memory_limit_bytes=1 << 30))
            await asyncio.sleep(6)
            assert (node.last.status, node.sets()[0]) == ("held", "11,22-23,35,46-47")
            assert 3 < node.last.lease_left_s < 5
            assert "the last sets are kept" in conditions(node.last)["NoFreshAdvice"]
            await asyncio.sleep(4.6)
            assert (node.last.status, pools(node.last)) == ("floor", FLOOR)
            assert (node.last.reclaimed_cpu_millis, node.last.lease_left_s) == (4_000, 0)
            assert node.plain.get(RECLAIMED, "memory.limit_in_bytes", "memory") == str(1 << 30)
            assert not node.app.health().ok
            again = await node.hear(node.advice())
            assert (again.status, node.sets()[0]) == ("applied", "11,22-23,35,46-47")

    virtual(story())


def test_replayed_stale_and_foreign_advice_changes_nothing_and_renews_no_lease(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=10) as node:
            old, new = node.advice(8, 40), node.advice(6, 42)
            await node.hear(new)
            before = {reason: refusals(reason) for reason in ("stale", "replayed", "foreign_node")}
            for _ in range(11):
                await asyncio.sleep(1)
                for late in (old, new, old.model_copy(update={"node": "n2", "seq": 99})):
                    await node.bus.publish(state_subject(PoolAdvice, NODE), late.encode())
            await asyncio.sleep(0.1)
            assert {reason: refusals(reason) - before[reason] for reason in before} == dict.fromkeys(before, 11)
            assert node.last.status == "floor"

    virtual(story())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"share": 6, "reclaim": 43}, "too_many_cpus"),
        ({"share": 4000, "reclaim": 2}, "too_many_cpus"),
        ({"pools": (PoolSize(pool="batch", cpus=1),)}, "unknown_pool"),
        ({"pools": (PoolSize(pool="share", cpus=1, numa=0),)}, "numa_bound"),
    ],
)
def test_impossible_advice_is_refused_counted_and_the_last_good_one_stays(
    tmp_path: Path, virtual: Run, fields: dict[str, Any], reason: str
) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            await node.hear(node.advice(8, 40))
            sets, before = node.sets(), refusals(reason)
            allocation = await node.hear(node.advice(**fields))
            assert (node.sets(), refusals(reason) - before) == (sets, 1)
            assert allocation.status == "applied"
            assert allocation.reclaimed_cpu_millis == 40_000
            assert f"advice {2}" in conditions(allocation)["AdviceRefused"]
            assert conditions(await node.hear(node.advice())) == {}

    virtual(story())


@pytest.mark.parametrize("payload", [b"", b"{", b'{"v":2}', b"[]", b"\xff" * 10])
def test_a_malformed_message_changes_nothing(tmp_path: Path, virtual: Run, payload: bytes) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            await node.hear(node.advice())
            sets = node.sets()
            await node.bus.publish(state_subject(PoolAdvice, NODE), payload)
            await asyncio.sleep(1)
            assert (node.sets(), node.last.status) == (sets, "applied")

    virtual(story())


def test_a_new_pod_follows_its_pool_before_the_period_is_over(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, period_s=60, poll_s=0.5, lease_s=100) as node:
            await node.hear(node.advice(valid_for_s=100))
            pod = Pod(uid="a1", name="encode", qos="reclaimed_cores", containers=(Container(name="main"),))
            node.plain.add(f"{RECLAIMED}/poda1")
            node.plain.add(f"{RECLAIMED}/poda1/main")
            node.pods.known.append(pod)
            await asyncio.sleep(0.6)
            assert node.plain.get(f"{RECLAIMED}/poda1/main") == node.sets()[1]
            assert [(p.name, p.pool, p.cpus) for p in node.last.pods] == [("encode", "reclaim", node.sets()[1])]

    virtual(story())


def test_pods_that_cannot_be_listed_are_not_taken_for_gone(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            node.plain.add(f"{SHARED}/podb2")
            node.pods.known.append(Pod(uid="b2", name="web"))
            await node.hear(node.advice())
            node.pods.broken = True
            await asyncio.sleep(3)
            assert [pod.name for pod in node.last.pods] == ["web"]
            assert conditions(node.last)["PodsUnavailable"] == "the store is away"

    virtual(story())


@pytest.mark.parametrize("mode", ["dry-run", "observe"])
@pytest.mark.parametrize("by", ["settings", "advice"])
def test_a_weaker_mode_writes_nothing_and_offers_nothing(tmp_path: Path, virtual: Run, mode: str, by: str) -> None:
    async def story() -> None:
        node = Node(tmp_path, mode=mode if by == "settings" else "enforce")
        if by == "advice":
            node.app.reconfigure({"mode": "dry-run"})  # nothing is written before the advice either
        async with node:
            if by == "advice":
                node.app.reconfigure({})
            allocation = await node.hear(node.advice(mode=mode if by == "advice" else "enforce"))
            assert node.sets() == ("0-47", "0-47")
            assert node.plain.get(RECLAIMED, "cpu.idle", "cpu") == "0"
            assert (allocation.status, allocation.mode, allocation.reclaimed_cpu_millis) == ("dry-run", mode, 0)
            would = [reason for reason in allocation.why if reason.rule == "would-write"]
            assert [reason.numbers["writes"] for reason in would] == ([3] if mode == "dry-run" else [])

    virtual(story())


def test_a_set_that_somebody_changed_is_repaired_and_after_three_times_left_alone(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=600, period_s=2) as node:
            await node.hear(node.advice(valid_for_s=600))
            wanted = node.sets()
            for _ in range(3):
                assert node.sets() == wanted
                node.plain.set(RECLAIMED, "cpuset.cpus", "0-47")
                await asyncio.sleep(2.1)
            assert node.plain.get(RECLAIMED) == "0-47"
            assert RECLAIMED in conditions(node.last)["ForeignWriter"]
            assert node.last.status == "partial"
            await asyncio.sleep(300)
            assert node.sets() == wanted
            assert conditions(node.last) == {}

    virtual(story())


def test_the_floor_that_the_watchdog_applied_is_no_foreign_writer(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        lease = Lease()
        async with Node(tmp_path, lease, lease_s=600, period_s=2) as node:
            await node.hear(node.advice(valid_for_s=600))
            for _ in range(4):
                lease.fell = True
                node.plain.set(RECLAIMED, "cpuset.cpus", "0,12,24,36")
                await asyncio.sleep(2.1)
            assert (node.last.status, conditions(node.last)) == ("applied", {})

    virtual(story())


def test_a_pods_set_that_somebody_changed_is_repaired_when_everything_is_verified(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=600, period_s=2, verify_s=10) as node:
            node.plain.add(f"{SHARED}/pod-a")
            await node.hear(node.advice(valid_for_s=600))
            await asyncio.sleep(2.1)
            wanted = node.plain.get(f"{SHARED}/pod-a")
            node.plain.set(f"{SHARED}/pod-a", "cpuset.cpus", "11")
            await asyncio.sleep(10)
            assert node.plain.get(f"{SHARED}/pod-a") == wanted == node.plain.get(SHARED)

    virtual(story())


def test_the_lease_is_renewed_by_good_advice_with_the_floor_ready(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        lease = Lease()
        async with Node(tmp_path, lease, lease_s=10, poll_s=0.5) as node:
            await node.hear(node.advice())
            await node.hear(node.advice(6, 4000))
            [(left_s, floor)] = lease.renewals
            assert left_s == pytest.approx(10.5, abs=0.01)
            assert (floor[RECLAIMED], floor[SHARED]) == (FLOOR["reclaim"], FLOOR["share"])
        assert lease.stopped

    virtual(story())


def test_a_second_start_within_the_lease_repairs_a_half_applied_change(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, Lease()) as first:
            await first.hear(first.advice(reclaimed_memory_limit_bytes=1 << 30))
            wanted = first.sets()
        first.plain.set(SHARED, "cpuset.cpus", "0-47")  # as if the last write had never come
        async with Node(tmp_path, Lease(left=5.5), plain=first.plain, poll_s=0.5) as second:
            assert (second.sets(), second.last.status) == (wanted, "held")
            assert second.last.reclaimed_cpu_millis == 42_000
            assert second.last.lease_left_s == pytest.approx(5.0, abs=0.1)
            await asyncio.sleep(5.6)
            assert (second.last.status, pools(second.last)) == ("floor", FLOOR)

    virtual(story())


def test_restarts_one_after_the_other_do_not_make_the_lease_longer(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, Lease(), poll_s=0.5) as first:
            await first.hear(first.advice())
        left_s = 8.0
        for _ in range(3):
            lease = Lease(left=left_s)
            async with Node(tmp_path, lease, plain=first.plain, poll_s=0.5):
                await asyncio.sleep(0.1)
            assert lease.renewals, "its pods are new to this life, and the lease names them"
            assert lease.renewals[-1][0] <= left_s
            left_s = lease.renewals[-1][0]

    virtual(story())


def test_a_start_after_the_lease_begins_at_the_floor(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, Lease()) as first:
            await first.hear(first.advice())
        async with Node(tmp_path, Lease(left=0.0), plain=first.plain) as second:
            assert (second.last.status, pools(second.last)) == ("floor", FLOOR)

    virtual(story())


def test_a_damaged_checkpoint_is_named_and_the_kernel_is_brought_to_the_floor(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state/checkpoint.json").write_text("{")
        async with Node(tmp_path) as node:
            assert "set aside" in conditions(node.last)["CheckpointRefused"]
            assert pools(node.last) == FLOOR
            await node.hear(node.advice())
            await asyncio.sleep(5)
            assert "CheckpointRefused" not in conditions(node.last), "there is a new one"

    virtual(story())


def test_a_cpu_that_goes_offline_ends_in_no_empty_set_and_no_crash(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=600, period_s=2) as node:
            await node.hear(node.advice(valid_for_s=600))
            node.topology = Topology.of([cpu for cpu in TUTORIAL_NODE.cpus if cpu.id < 2])
            for group in ("", "sublet", "sublet/dedicated_cores", "sublet/system_cores", SHARED, RECLAIMED):
                node.plain.set(group, "cpuset.cpus", "0-1")
            await asyncio.sleep(3)
            assert node.sets() == ("0-1", "0")
            assert (node.last.status, "this machine has 2" in conditions(node.last)["AdviceRefused"]) == ("floor", True)
            smaller = await node.hear(node.advice(2, 1, overlap=True))
            assert (smaller.status, conditions(smaller)) == ("applied", {})

    virtual(story())


def test_cgroups_that_cannot_be_made_are_said_and_do_not_end_the_service(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        plain = PlainCgroups(tmp_path / "host")

        def refuse(_group: str) -> None:
            raise PermissionError(13, "Permission denied")

        plain.cgroups.make = refuse  # type: ignore[method-assign, assignment]
        async with Node(tmp_path, plain=plain) as node:
            allocation = await node.hear(node.advice())
            assert (allocation.status, allocation.reclaimed_cpu_millis) == ("failed", 0)
            assert "cannot be made: Permission denied" in conditions(allocation)["WriteFailed"]

    virtual(story())


def test_settings_are_taken_whole_or_not_at_all(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path, lease_s=7) as node:
            with pytest.raises(BadConfig, match="did you mean 'order'"):
                node.app.reconfigure({"odrer": "share-first", "lease_s": 3})
            assert node.app.state()["settings"]["lease_s"] == 7
            node.app.reconfigure({"order": "share-first"})
            await node.hear(node.advice())
            assert node.sets()[0] == "0-1,12,24-25,36"
            assert node.app.state()["settings"]["lease_s"] == 7

    virtual(story())


def test_the_reclaimed_class_is_bounded_by_an_advised_quota_and_freed_when_the_advice_names_none(
    tmp_path: Path, virtual: Virtual
) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:

            def quota() -> str:
                return node.plain.get(RECLAIMED, "cpu.cfs_quota_us", "cpu")

            await node.hear(node.advice(6, 42, reclaimed_quota_millis=1500))
            assert quota() == "150000"
            await asyncio.sleep(30)
            assert quota() == "150000", "without advice the bound stays"
            await node.hear(node.advice(6, 42))
            assert quota() == "-1"

    virtual(story())
