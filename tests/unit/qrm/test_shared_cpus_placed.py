"""CPUs that tenants share with reclaimed pods: who is on which, in which order it is written, and no idle class."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qrm_world import FLOOR, RECLAIMED, SHARED, TUTORIAL_NODE, Node, Run, conditions, pools

from services.qrm.core.active_advice import offered, partitioned, shares_by_choice
from services.qrm.core.placement.pools import place
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
            for group in ("sublet", RECLAIMED):
                (node.plain.folder(group, "cpu") / "cpu.idle").unlink()
            allocation = await node.hear(shared_advice(node, 15, 33, reclaimed_cpu_millis=40_000, oversold_ratio=1.5))
            told = pools(allocation)
            assert not CpuSet.parse(told["share"]) & CpuSet.parse(told["reclaim"])
            assert "want Linux 5.15" in conditions(allocation)["NoIdleClass"]
            assert allocation.reclaimed_cpu_millis == 33_000, "what is not there is not promised"
            apart = await node.hear(node.advice(20, 28))
            assert "NoIdleClass" not in conditions(apart)

    virtual(story())


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
