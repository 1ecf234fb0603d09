"""A node that observes has nothing written and nothing offered; one that stops enforcing has its groups as before."""

import asyncio
from pathlib import Path

import pytest
from qrm_world import FLOOR, MEMORY, RECLAIMED, Lease, Node, Run, conditions

from shared.core.cgroups.knobs import UNLIMITED, Knob

WHOLE = ("0-47", "0-47")
LIMIT = MEMORY // 2


def settings(node: Node) -> dict[str, str]:
    """Every file of every group, with its text."""
    return {str(path): path.read_text() for path in sorted(node.plain.cgroups.root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("own", ["observe", "dry-run", "enforce"])
def test_observing_writes_and_offers_nothing_and_says_what_it_would(tmp_path: Path, virtual: Run, own: str) -> None:
    async def story() -> None:
        node = Node(tmp_path, lease := Lease(), mode=own)
        node.switch.mode = "observe"
        before = settings(node)
        async with node:
            allocation = await node.hear(node.advice(reclaimed_memory_limit_bytes=LIMIT))
            assert node.app.health().ok
            await asyncio.sleep(30)
            assert settings(node) == before
            assert (allocation.reclaimed_cpu_millis, allocation.reclaimed_memory_bytes) == (0, 0)
            assert not lease.renewals
            would = {reason.rule: reason.numbers for reason in allocation.why}
            assert would["would-offer"] == {"cpu_millis": 42_000, "memory_bytes": MEMORY}
            assert ("would-write" in would) == (own != "observe")
            assert "nothing is changed or offered; pools would be reclaim" in conditions(allocation)["Observing"]

    virtual(story())


def test_from_observe_to_enforce_the_advice_is_applied(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path, Lease())
        node.switch.mode = "observe"
        async with node:
            await node.hear(node.advice())
            assert node.sets() == WHOLE
            node.switch.mode = "enforce"
            node.app.reconfigure({})
            allocation = await node.hear(node.advice())
            assert node.sets() != WHOLE
            assert (allocation.status, allocation.reclaimed_cpu_millis) == ("applied", 42_000)
            assert "Observing" not in conditions(allocation)

    virtual(story())


def test_from_enforce_to_observe_everything_is_given_back_and_the_lease_goes_last(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path, lease := Lease())
        async with node:
            await node.hear(node.advice(reclaimed_memory_limit_bytes=LIMIT, reclaimed_quota_millis=10_000))
            assert node.sets() != WHOLE
            assert lease.renewals
            node.switch.mode = "observe"
            node.app.reconfigure({})
            await asyncio.sleep(3)
            assert node.sets() == WHOLE
            cgroups = node.plain.cgroups
            assert {cgroups.read(RECLAIMED, knob) for knob in (Knob.MEMORY_MAX, Knob.CPU_QUOTA)} <= {
                None,
                UNLIMITED,
                -1,
            }
            assert node.plain.get(RECLAIMED, "cpu.idle", "cpu") == "0"
            assert (lease.removed, node.last.reclaimed_cpu_millis, node.last.reclaimed_memory_bytes) == (True, 0, 0)
            given_back = settings(node)
            await node.hear(node.advice())
            await asyncio.sleep(30)
            assert settings(node) == given_back

    virtual(story())


def test_what_an_earlier_life_has_left_is_given_back_at_the_start(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path, lease := Lease(left=5.0))
        node.plain.set(RECLAIMED, "cpuset.cpus", "1-47")
        node.switch.mode = "observe"
        async with node:
            await asyncio.sleep(3)
            assert node.sets() == WHOLE
            assert lease.removed

    virtual(story())


def test_in_a_cluster_a_start_without_configuration_gives_nothing_back_yet(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path, lease := Lease(left=5.0), substrate="kubernetes")
        node.plain.set(RECLAIMED, "cpuset.cpus", "1-47")
        node.switch.mode = "observe"
        async with node:
            await asyncio.sleep(60)
            assert (node.plain.get(RECLAIMED), lease.removed) == ("1-47", False)
            node.wire.config_rev = 1
            await asyncio.sleep(3)
            assert node.sets() == WHOLE
            assert lease.removed

    virtual(story())


def test_a_moment_of_observing_between_two_entries_gives_nothing_back(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Node(tmp_path, lease := Lease())
        async with node:
            await node.hear(node.advice())
            taken = node.sets()
            node.switch.mode = "observe"
            node.app.reconfigure({})
            await asyncio.sleep(0.6)
            node.switch.mode = "enforce"
            node.app.reconfigure({})
            await asyncio.sleep(2)
            assert node.sets() == taken
            assert not lease.removed

    virtual(story())


def test_a_mode_that_writes_nothing_keeps_the_offer_only_as_far_as_it_is_still_in_force(
    tmp_path: Path, virtual: Run
) -> None:
    async def story() -> None:
        lease = Lease()
        async with Node(tmp_path, lease, lease_s=30) as node:
            await node.hear(node.advice(6, 42, reclaimed_memory_limit_bytes=MEMORY))
            node.app.reconfigure({"mode": "dry-run"})
            allocation = await node.hear(node.advice(4, 44))
            assert (allocation.reclaimed_cpu_millis, allocation.reclaimed_memory_bytes) == (42_000, MEMORY)
            # Nobody renews the lease, and the watchdog ends what enforcing has left behind.
            lease.fell = True
            node.plain.set(RECLAIMED, "cpuset.cpus", FLOOR["reclaim"])
            assert (await node.hear(node.advice(4, 44))).reclaimed_cpu_millis == 4_000
            node.plain.set(RECLAIMED, "cpuset.cpus", "0-47")
            assert (await node.hear(node.advice(4, 44))).reclaimed_cpu_millis == 4_000

    virtual(story())
