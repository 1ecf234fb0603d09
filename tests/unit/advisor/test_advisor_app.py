"""The advisor on a bus in memory and in virtual time."""

import asyncio

import pytest
from advisor_world import SOON_S, Live, MakeFields, MakePod, Node
from present import present

from shared.contracts.sample import NodeReading
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import BadConfig


def test_a_sample_leads_to_advice_at_once(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        sample = await node.measure(fields(pod("web", cpu_millis=2000, cpu_usage_cores=1.0, load1=1.0)))
        advice = node.advices[0]
        assert advice.based_on == (sample.ref,)
        assert (advice.seq, advice.policy, advice.mode, advice.valid_for_s) == (1, "adaptive", "enforce", 10)
        assert [(pool.pool, pool.cpus) for pool in advice.pools] == [("share", 6), ("reclaim", 42), ("reserve", 0)]
        assert (advice.reclaimed_cpu_millis, advice.overlap) == (42_000, False)
        assert advice.why
        assert node.heard[0][0] <= 2 * SOON_S

    live(story)


def test_before_the_first_sample_nothing_is_said(live: Live) -> None:
    async def story(node: Node) -> None:
        await asyncio.sleep(60)
        assert node.advices == []
        health = node.app.health()
        assert (health.ok, health.input_age_s) == (False, None)

    live(story)


def test_the_same_advice_is_said_again_while_its_sample_is_fresh(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields())
        await asyncio.sleep(4.5)
        assert [round(at) for at, _ in node.heard] == [0, 2, 4]
        assert [advice.seq for advice in node.advices] == [1, 2, 3]
        assert (
            len(
                {advice.model_copy(update={"seq": 0, "sent_at": node.clock.wall()}).encode() for advice in node.advices}
            )
            == 1
        )

    live(story, {"period_s": 2})  # fmt: skip


def test_when_samples_stop_one_cautious_advice_follows_and_then_silence(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(pod("web", cpu_millis=9000, cpu_usage_cores=1.0)))
        await asyncio.sleep(5.9)
        assert set(node.shares) == {6}
        assert node.app.health().ok
        await asyncio.sleep(0.2)
        last_at, last = node.heard[-1]
        assert 6 < last_at < 6.2
        assert last.size_of("share") == 14  # what the pod asked for, and the reserve
        assert last.reclaimed_memory_limit_bytes is None
        said = len(node.heard)
        await asyncio.sleep(600)
        assert len(node.heard) == said
        health = node.app.health()
        assert not health.ok
        assert present(health.input_age_s) > 600

    live(story)


def test_when_samples_stop_tenants_that_use_more_than_they_asked_for_lose_nothing(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        await node.measure(
            fields(pod("web", cpu_millis=1000, memory_bytes=1, cpu_usage_cores=20.0, memory_rss_bytes=9 << 30))
        )
        before = node.advices[-1]
        await asyncio.sleep(100)
        last = node.advices[-1]
        assert last.size_of("share") == before.size_of("share") == 30
        assert last.reclaimed_memory_bytes == before.reclaimed_memory_bytes

    live(story)


def test_when_samples_come_back_the_sizes_go_on_from_where_they_were(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(pod("web", cpu_usage_cores=20.0)))
        await asyncio.sleep(100)
        await node.measure(fields(pod("web", cpu_usage_cores=1.0)))
        assert node.shares[-1] == 28
        assert node.app.health().ok

    live(story)


def test_a_spike_grows_the_share_in_one_step_and_the_way_back_takes_its_time(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        for usage in (1.0, 30.0, 1.0):
            await node.measure(fields(pod("web", cpu_usage_cores=usage)))
        assert node.shares == [6, 42, 40]
        while node.clock.monotonic() < 95:
            await node.measure(fields(pod("web", cpu_usage_cores=1.0)))
            await asyncio.sleep(1)
        assert node.shares[-1] == 34

    live(story, {"policy": "canonical"})


def test_the_first_pass_of_a_measuring_life_is_waited_out(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(pod("web", cpu_millis=1000, cpu_usage_cores=20.0)))
        before = node.shares[-1]
        await node.measure(fields(pod("web", cpu_millis=1000), window_s=None))
        assert node.shares == [before]
        await node.measure(fields(pod("web", cpu_millis=1000, cpu_usage_cores=20.0)))
        assert node.shares == [before, before]

    live(story)


def test_a_metrics_service_that_never_gets_past_its_first_pass_counts_as_silent(
    live: Live, fields: MakeFields, pod: MakePod
) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(pod("web", cpu_millis=9000, cpu_usage_cores=1.0)))
        for _ in range(10):
            await node.measure(fields(pod("web", cpu_millis=9000), window_s=None))
            await asyncio.sleep(1)
        assert node.shares[-1] == 14
        assert node.heard[-1][0] < 7
        assert not node.app.health().ok

    live(story)


def test_cpus_that_go_offline_are_not_advised(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(node_reading=NodeReading(online_cpus="0-43")))
        assert sum(pool.cpus for pool in node.advices[-1].pools) == 44

    live(story)


def test_a_small_machine_shares_its_cpus(live: Live, fields: MakeFields, pod: MakePod) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields(pod("web", cpu_usage_cores=1.0), node={"online_cpus": "0-1"}))
        advice = node.advices[-1]
        assert (advice.overlap, advice.size_of("share"), advice.size_of("reclaim")) == (True, 2, 1)
        assert advice.reclaimed_cpu_millis == 1000

    live(story, topology=Topology.uniform(UniformShape(sockets=1, numa_per_socket=1, cores_per_numa=2, threads=1)))


def test_new_settings_show_in_the_next_advice(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields())
        node.app.reconfigure({"reserve_cores": 9, "policies": {"adaptive": {"mode": "observe"}}})
        await node.measure(fields())
        assert node.shares == [4, 10]
        assert node.advices[-1].mode == "observe"

    live(story)


def test_bad_settings_are_refused_whole_and_the_last_good_ones_stay(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        node.app.reconfigure({"reserve_cores": 9})
        with pytest.raises(BadConfig, match="no such policy"):
            node.app.reconfigure({"reserve_cores": 20, "policy": "nope"})
        await node.measure(fields())
        assert node.shares == [10]

    live(story)


def test_dynamic_settings_lie_over_the_static_ones(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        node.app.reconfigure({"reserve_pool_cpus": 2})
        await node.measure(fields())
        assert [pool.cpus for pool in node.advices[-1].pools] == [10, 36, 2]

    live(story, {"reserve_cores": 9})


def test_a_bus_that_is_away_costs_messages_and_nothing_else(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        await node.measure(fields())
        node.bus.go_offline()
        await asyncio.sleep(3)
        node.bus.go_online()
        await asyncio.sleep(1.5)
        assert len(node.heard) >= 2

    live(story, {"period_s": 2})


def test_the_state_tells_what_the_advice_rests_on(live: Live, fields: MakeFields) -> None:
    async def story(node: Node) -> None:
        sample = await node.measure(fields())
        state = node.app.state()
        assert (state["policy"], state["input"], state["fresh"]) == ("adaptive", [sample.ref], True)
        assert state["advice"]["reclaimed_cpu_millis"] == 44_000

    live(story)
