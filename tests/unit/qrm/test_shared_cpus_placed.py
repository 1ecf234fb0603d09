"""CPUs that tenants share with reclaimed pods: who is on which, in which order it is written, and no idle class."""

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_cgroups import PlainCgroups
from qrm_world import FLOOR, RECLAIMED, SHARED, TUTORIAL_NODE, Node, Run, conditions, pools

from services.qrm.core.active_advice import offered, partitioned, shares_by_choice
from services.qrm.core.placement.pools import place
from services.qrm.core.writes.apart import kept_apart
from services.qrm.core.writes.plan import Sets, WantedSets
from shared.contracts.advice import PoolAdvice, PoolSize
from shared.core.cgroups.knobs import Knob
from shared.core.cpus.cpuset import CpuSet


def shared_advice(node: Node, share: int, reclaim: int, **fields: Any) -> PoolAdvice:
    return node.advice(share, reclaim, overlap=True, **fields)


def test_tenants_run_on_every_cpu_and_reclaimed_pods_on_those_that_they_do_not_need(
    tmp_path: Path, virtual: Run
) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            told = pools(await node.hear(shared_advice(node, 15, 33)))
            assert told["share"] == "0-47"
            assert len(CpuSet.parse(told["reclaim"])) == 33
            assert node.sets() == (told["share"], told["reclaim"])
            assert node.plain.get(RECLAIMED, "cpu.idle", "cpu") == "1"

    virtual(story())


def test_back_to_partitioned_is_as_if_never_shared(tmp_path: Path, virtual: Run) -> None:
    async def story(folder: Path, *, shared_before: bool) -> tuple[tuple[str, str], str]:
        folder.mkdir()
        async with Node(folder) as node:
            if shared_before:
                await node.hear(shared_advice(node, 15, 33))
            await node.hear(node.advice(20, 28))
            return node.sets(), node.plain.get(RECLAIMED, "cpu.idle", "cpu")

    assert virtual(story(tmp_path / "a", shared_before=True)) == virtual(story(tmp_path / "b", shared_before=False))


def test_reclaimed_work_is_behind_all_others_before_it_is_beside_a_tenant(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            await node.hear(node.advice(20, 28))
            # Somebody has taken it out of the idle class, in the same moment as CPUs are to be shared.
            node.plain.set(RECLAIMED, "cpu.idle", "0", "cpu")
            written: list[tuple[str, Knob]] = []
            write = node.plain.cgroups.write

            def seen(group: str, knob: Knob, value: Any) -> bool:
                done = write(group, knob, value)
                written.append((group, knob))
                beside = CpuSet.parse(node.plain.get(SHARED)) & CpuSet.parse(node.plain.get(RECLAIMED))
                assert not beside or node.plain.get(RECLAIMED, "cpu.idle", "cpu") == "1", written
                return done

            monkeypatch.setattr(node.plain.cgroups, "write", seen)
            await node.hear(shared_advice(node, 15, 33))
            assert written.index((RECLAIMED, Knob.CPU_IDLE)) < written.index((SHARED, Knob.CPUS))
            # And back: its sets are apart again, while it is still behind.
            await node.hear(node.advice(20, 28))

    virtual(story())


def test_a_kernel_without_an_idle_class_partitions_and_says_so(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            for group in ("", "sublet", RECLAIMED):
                (node.plain.folder(group, "cpu") / "cpu.idle").unlink()
            allocation = await node.hear(shared_advice(node, 15, 33, reclaimed_cpu_millis=40_000, oversold_ratio=1.5))
            told = pools(allocation)
            assert not CpuSet.parse(told["share"]) & CpuSet.parse(told["reclaim"])
            assert "want Linux 5.15" in conditions(allocation)["NoIdleClass"]
            assert allocation.reclaimed_cpu_millis == 33_000, "what is not there is not promised"
            apart = await node.hear(node.advice(20, 28))
            assert "NoIdleClass" not in conditions(apart)

    virtual(story())


def test_advice_for_all_online_cpus_is_apart_though_the_root_grants_fewer(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        plain = PlainCgroups(tmp_path / "host", cpus="0-23")
        plain.add_classes()
        async with Node(tmp_path, plain=plain) as node:
            for group in ("", "sublet", RECLAIMED):
                (plain.folder(group, "cpu") / "cpu.idle").unlink()
            allocation = await node.hear(shared_advice(node, 15, 33))
            assert "NoIdleClass" in conditions(allocation)
            assert not CpuSet.parse(plain.get(SHARED)) & CpuSet.parse(plain.get(RECLAIMED))

    virtual(story())


@pytest.mark.parametrize("mode", ["observe", "dry-run"])
@pytest.mark.parametrize("kernel_can", [True, False])
def test_before_anything_was_written_other_groups_tell_whether_there_is_an_idle_class(
    tmp_path: Path, virtual: Run, mode: str, kernel_can: bool
) -> None:
    async def story() -> None:
        plain = PlainCgroups(tmp_path / "host")
        plain.add("system.slice")
        for group in ("",) if kernel_can else ("", "system.slice"):
            (plain.folder(group, "cpu") / "cpu.idle").unlink()
        if kernel_can:  # as on cgroup v2, where the root has neither
            (plain.folder("", "cpu") / "cpu.shares").unlink()
        async with Node(tmp_path, plain=plain, mode=mode) as node:
            allocation = await node.hear(shared_advice(node, 15, 33))
            assert ("NoIdleClass" not in conditions(allocation)) is kernel_can
            assert allocation.idle_class is kernel_can, "the advisor shares CPUs by this word"

    virtual(story())


def test_a_kernel_whose_groups_show_no_weight_is_not_known_to_have_an_idle_class(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            for group in ("", "sublet", RECLAIMED, SHARED):
                (node.plain.folder(group, "cpu") / "cpu.shares").unlink()
            assert (await node.hear(node.advice(20, 28))).idle_class is None

    virtual(story())


@pytest.mark.parametrize("code", [errno.EPERM, errno.EBUSY])
def test_nobody_comes_beside_work_that_the_kernel_does_not_put_behind_tenants(
    tmp_path: Path, virtual: Run, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            await node.hear(node.advice(20, 28))
            node.plain.set(RECLAIMED, "cpu.idle", "0", "cpu")
            write = node.plain.cgroups.write

            def refused(group: str, knob: Knob, value: Any) -> bool:
                if knob is Knob.CPU_IDLE and group == RECLAIMED:
                    raise OSError(code, os.strerror(code))
                return write(group, knob, value)

            monkeypatch.setattr(node.plain.cgroups, "write", refused)
            allocation = await node.hear(shared_advice(node, 15, 33))
            tenants, batch = (CpuSet.parse(cpus) for cpus in node.sets())
            assert not tenants & batch
            assert allocation.status == "partial"
            monkeypatch.setattr(node.plain.cgroups, "write", write)
            await asyncio.sleep(node.app.state()["settings"]["period_s"] + 1)
            assert node.plain.get(RECLAIMED, "cpu.idle", "cpu") == "1"
            assert node.sets()[0] == "0-47"

    virtual(story())


_WHERE = st.frozensets(st.integers(0, 7), min_size=1).map(CpuSet.of)


@given(_WHERE, _WHERE, _WHERE, _WHERE)
def test_apart_is_kept_whatever_is_wanted(tenant: CpuSet, batch: CpuSet, to_tenant: CpuSet, to_batch: CpuSet) -> None:
    mems = CpuSet.of([0])
    wanted = {"t": WantedSets(Sets(to_tenant, mems), 1), "b": WantedSets(Sets(to_batch, mems), 0)}
    now = {"t": Sets(tenant, mems), "b": Sets(batch, mems)}
    assert kept_apart(wanted, now, ()) == wanted
    kept = {group: one.sets.cpus for group, one in kept_apart(wanted, now, {"b"}).items()}
    assert kept["t"]
    assert kept["b"]
    assert kept["t"] <= to_tenant
    assert kept["b"] <= to_batch
    assert kept["b"] <= batch or not to_batch & batch
    # Side by side are at most those who were, or who have nowhere else to go.
    elsewhere = to_tenant - (kept["b"] - tenant)
    assert not (kept["t"] & kept["b"]) - tenant or not elsewhere


def test_a_group_that_only_holds_others_keeps_room_for_work_that_moves() -> None:
    """Everything that it had is lent, and what it will hold is not there yet."""
    mems = CpuSet.of([0])
    wanted = {
        "top": WantedSets(Sets(CpuSet.parse("0-7"), mems)),
        "top/b": WantedSets(Sets(CpuSet.parse("4-5"), mems), 0),
    }
    now = {"top": Sets(CpuSet.parse("0-3"), mems), "top/b": Sets(CpuSet.parse("0-1"), mems)}
    assert kept_apart(wanted, now, {"top/b"}) == wanted


def test_groups_that_are_not_there_yet_or_of_which_nothing_is_wanted_hold_up_no_pass() -> None:
    mems = CpuSet.of([0])
    wanted = {group: WantedSets(Sets(CpuSet.parse("0-3"), mems), rank) for group, rank in (("t", 1), ("b", 0))}
    now = {"b": Sets(CpuSet.parse("0"), mems)}
    kept = kept_apart(wanted, now, {"b", "somebody's"})
    assert {group: str(one.sets.cpus) for group, one in kept.items()} == {"t": "1-3", "b": "0"}


def test_more_than_the_pool_is_promised_while_it_is_in_force_and_not_at_the_floor(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        async with Node(tmp_path) as node:
            spike = shared_advice(node, 38, 10, reclaimed_cpu_millis=30_000, oversold_ratio=3.0)
            assert (await node.hear(spike)).reclaimed_cpu_millis == 30_000
            await asyncio.sleep(12)
            assert (node.last.status, pools(node.last)) == ("floor", FLOOR)
            assert node.last.reclaimed_cpu_millis == 4000

    virtual(story())


def test_the_floor_offers_no_more_than_its_cpus() -> None:
    advice = _advice(38, 10, reclaimed_cpu_millis=30_000, oversold_ratio=3.0)
    assert offered(advice, 10, None) == (30_000, 0)
    assert offered(advice, 4, None, at_floor=True) == (4000, 0)


def test_no_milli_core_is_lost_to_floating_point() -> None:
    assert offered(_advice(47, 1, reclaimed_cpu_millis=30_000, oversold_ratio=2.01), 1, None) == (2010, 0)


@given(st.integers(1, 47), st.integers(0, 40), st.data())
def test_nobody_else_is_ever_on_cpus_that_pods_have_for_themselves(
    reclaim: int, owned: int, data: st.DataObject
) -> None:
    own = CpuSet.of(data.draw(st.permutations(range(48)))[:owned])
    advice = _advice(48 - reclaim, reclaim)
    placed = place(TUTORIAL_NODE, advice, owned=own).pools
    assert shares_by_choice(advice, 48)
    assert placed["share"] == TUTORIAL_NODE.all - own
    assert placed["reclaim"]
    assert placed["reclaim"] <= placed["share"]
    assert len(placed["reclaim"]) <= reclaim
    # What shares is also what fits apart, so that a kernel without an idle class can have it.
    apart = place(TUTORIAL_NODE, partitioned(advice), owned=own).pools
    assert not apart["share"] & own
    assert not apart["reclaim"] & own


def test_a_small_machine_does_not_share_by_choice() -> None:
    small = _advice(2, 1)
    assert small.overlap
    assert not shares_by_choice(small, 2)


def _advice(share: int, reclaim: int, **fields: Any) -> PoolAdvice:
    sizes = (PoolSize(pool="share", cpus=share), PoolSize(pool="reclaim", cpus=reclaim))
    defaults = {"policy": "p", "reclaimed_cpu_millis": 1000 * reclaim, "reclaimed_memory_bytes": 0}
    envelope = {"node": "n", "boot_id": "0" * 8, "seq": 1, "sent_at": "2026-01-01T00:00:00Z"}
    return PoolAdvice.model_validate({"pools": sizes, "overlap": True, **envelope, **defaults, **fields})
