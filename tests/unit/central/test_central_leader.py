"""The lease: who may write, from when to when, and what is refused to everybody else."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from fixture_types import Virtual

from services.central.adapters.node_entries import NodeEntries
from services.central.core.objects.cnc import NodeConfig
from services.central.core.rollout.plan import ConfigSource
from services.central.leadership.leader import Leader, NotLeading
from services.central.leadership.objects import LeaderObjects
from services.central.settings import LeaseSettings
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.core.api_kind import CNCS, CNRS, LEASES, NODES
from shared.errors import BadConfig
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.settings import check

NAME = ("sublet-central", "sublet-system")


class Running(Leader):
    """A candidate at work."""

    task: asyncio.Task[None]


async def forever() -> None:
    await asyncio.Event().wait()


Work = Callable[[], Coroutine[Any, Any, None]]
Candidate = Callable[..., Running]
"""Makes a candidate: its name, and its work unless that is to wait."""
Story = Callable[[MemoryObjects, Candidate], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story with an API server and candidates for its lease."""

    async def run(story: Story) -> None:
        api = MemoryObjects(LoopClock())
        tasks: list[asyncio.Task[None]] = []

        def candidate(name: str, work: Work | None = None) -> Running:
            leader = Running(api, api.clock, name, LeaseSettings())
            leader.task = asyncio.create_task(leader.run(work or forever))
            tasks.append(leader.task)
            return leader

        await story(api, candidate)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    return lambda story: virtual(run(story))


def test_every_write_of_one_that_does_not_lead_is_refused(play: Play) -> None:
    async def story(api: MemoryObjects, _candidate: Candidate) -> None:
        leader = Leader(api, api.clock, "me", LeaseSettings())
        objects = LeaderObjects(api, leader)
        api.put(CNCS, {"metadata": {"name": "n1"}})
        bus = MemoryBus()
        await bus.ensure_bucket(CONFIG_BUCKET)
        entries = NodeEntries(bus, leader)
        source = ConfigSource(NodeConfig(name="default", hash="h"), {"evictor": {}})
        for write in (
            objects.create(CNRS, {"metadata": {"name": "n1"}}),
            objects.patch(CNCS, {"metadata": {"name": "n1"}, "spec": {"a": 1}}),
            objects.delete(CNCS, "n1", uid="u"),
            entries.write({"n1": {"evictionconfigurations": source}}),
            leader.annotate({"a": "1"}),
        ):
            with pytest.raises(NotLeading, match="me does not lead"):
                await write
        assert api.writes == []
        assert not bus.broker.buckets[CONFIG_BUCKET].after(0)
        assert await objects.get(CNCS, "n1") is not None
        assert await objects.list(NODES) == []

    play(story)


def test_work_is_stopped_with_the_lease_and_begun_again_with_it(play: Play) -> None:
    async def story(api: MemoryObjects, candidate: Candidate) -> None:
        seen = []

        async def work() -> None:
            seen.append("begins")
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("ends")

        leader = candidate("me", work)
        await asyncio.sleep(5)
        api.go_offline()
        await asyncio.sleep(10.1)
        assert (seen, leader.leading) == (["begins", "ends"], False)
        api.go_online()
        await asyncio.sleep(3)
        assert (seen[2:], leader.leading, leader.epoch) == (["begins"], True, 1)

    play(story)


def test_a_short_outage_keeps_the_lease(play: Play) -> None:
    async def story(api: MemoryObjects, candidate: Candidate) -> None:
        leader = candidate("me")
        await asyncio.sleep(5)
        api.go_offline()
        await asyncio.sleep(7)
        assert leader.leading
        api.go_online()
        await asyncio.sleep(5)
        assert (leader.leading, leader.epoch) == (True, 1)

    play(story)


def test_never_do_two_lead_whatever_the_order_of_outages(play: Play) -> None:
    async def story(api: MemoryObjects, candidate: Candidate) -> None:
        leaders = [candidate(f"c{i}") for i in range(3)]
        epochs = []
        for turn in range(200):
            if turn % 40 == 20:
                for leader in leaders:
                    if leader.leading:
                        leader.task.cancel()
                leaders.append(candidate(f"d{turn}"))
            for _ in range(5):
                await asyncio.sleep(0.2)
                leading = [one for one in leaders if one.leading and not one.task.done()]
                assert len(leading) <= 1
                epochs += [one.epoch for one in leading]
        assert epochs == sorted(epochs)
        assert epochs[-1] > epochs[0] == 1

    play(story)


def test_the_lease_in_hand_of_somebody_whose_clock_is_wrong_is_judged_by_our_own(play: Play) -> None:
    async def story(api: MemoryObjects, candidate: Candidate) -> None:
        spec = {"holderIdentity": "past", "leaseDurationSeconds": 15, "renewTime": "2001-01-01T00:00:00.000000Z"}
        api.put(LEASES, {"metadata": {"name": NAME[0], "namespace": NAME[1]}, "spec": spec})
        leader = candidate("me")
        await asyncio.sleep(14)
        assert not leader.leading
        await asyncio.sleep(5)
        assert (leader.leading, leader.epoch) == (True, 2)

    play(story)


def test_what_is_kept_with_the_lease_is_there_for_the_next_one(play: Play) -> None:
    async def story(api: MemoryObjects, candidate: Candidate) -> None:
        one = candidate("one")
        await asyncio.sleep(1)
        await one.annotate({"sublet.io/x": "7"})
        one.task.cancel()
        await asyncio.sleep(0)
        await one.release()
        assert not one.leading
        two = candidate("two")
        await asyncio.sleep(1)
        assert (two.leading, two.annotations, two.epoch) == (True, {"sublet.io/x": "7"}, 2)
        with pytest.raises(NotLeading):
            await one.annotate({"sublet.io/x": "8"})

    play(story)


def test_work_that_ends_by_itself_is_a_crash(play: Play) -> None:
    async def story(_api: MemoryObjects, candidate: Candidate) -> None:
        async def work() -> None:
            return

        leader = candidate("me", work)
        await asyncio.sleep(5)
        assert "ended by itself" in str(leader.task.exception())

    play(story)


@pytest.mark.parametrize("wrong", [{"renew_s": 15}, {"retry_s": 10}, {"lease_s": 9}])
def test_periods_in_which_two_could_lead_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(BadConfig, match="retry_s < renew_s < lease_s"):
        check(LeaseSettings, wrong, where="central.kubernetes.lease")
