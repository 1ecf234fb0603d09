"""The metrics service over a host of functions of time, in virtual time."""

import asyncio
import itertools
import json

import pytest
from fixture_types import Virtual
from metrics_world import GIB, POD, TOTAL, Scene, Service, running
from present import present

from shared.contracts.pod import Pod
from shared.errors import BadConfig


def test_a_quiet_node_is_sampled_once_a_period_and_has_rates_at_once(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(7)
        assert service.said == [(0.0, "start"), (0.1, "start"), (2.1, "period"), (4.1, "period"), (6.1, "period")]
        first, second = service.samples[0][1], service.samples[1][1]
        assert first.window_s is first.pods[0].containers[0].cpu_usage_cores is None
        assert present(second.pool("share")).cpu_usage_cores == pytest.approx(0.5)
        assert service.last.window_s == pytest.approx(2.0)
        assert service.host.looks == pytest.approx(70, abs=2)

    scene(story)


async def spiked(service: Service) -> list[float | None]:
    """Let the tenants use three cores at once; the use of their pool by the samples of the two probes behind that."""
    service.host.load(3.0)
    start_s = service.clock.monotonic()
    await asyncio.sleep(0.26)
    assert service.since(start_s) == [(0.05, "tenant"), (0.15, "tenant")]
    return [present(sample.pool("share")).cpu_usage_cores for _, sample in service.samples[-2:]]


def test_a_spike_of_the_tenants_shows_within_two_probes_at_its_height(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(7.55)
        pools = await spiked(service)
        assert pools == [pytest.approx(1.75, abs=0.01), pytest.approx(3.0, abs=0.01)]
        container = service.last.pods[0].containers[0]
        assert container.cpu_usage_cores == pytest.approx(3.0, abs=0.01)
        assert service.last.window_s == pytest.approx(0.1)

    scene(story)


def test_a_spike_shows_at_its_height_where_the_tenants_were_last_read_long_ago(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.probing = service.host.standing
        service.host.load(0.001)
        await asyncio.sleep(7.55)
        pools = await spiked(service)
        # Of the probe before: without it, the first would show the mean of a second and a half.
        assert pools == [pytest.approx(1.5, abs=0.06), pytest.approx(3.0, abs=0.06)]

    scene(story)


def test_steady_tenants_wake_nobody_again_and_the_period_goes_on(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(7.55)
        service.host.load(3.0)
        start_s = service.clock.monotonic()
        await asyncio.sleep(5)
        assert service.since(start_s)[2:] == [(2.15, "period"), (4.15, "period")]

    scene(story)


def test_bursts_of_the_same_height_are_news_once_a_period(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.5)
        start_s = service.clock.monotonic()
        for _ in range(10):  # 0.2 s at four cores, 0.2 s idle
            service.host.load(4.0)
            await asyncio.sleep(0.2)
            service.host.load(0.0)
            await asyncio.sleep(0.2)
        early = [trigger for _, trigger in service.since(start_s) if trigger == "tenant"]
        assert 2 <= len(early) <= 8

    scene(story)


def test_falling_below_the_watch_is_confirmed_also_where_a_second_look_finds_it(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.55)
        start_s = service.clock.monotonic()
        service.host.free = 2 * GIB  # a drop worth a pass, and its second look
        await asyncio.sleep(0.1)
        service.host.free = GIB // 2
        await asyncio.sleep(1)
        assert service.since(start_s) == [(0.05, "memory"), (0.15, "memory"), (0.25, "memory")]

    scene(story)


def test_falling_memory_is_told_at_once_and_twice_for_confirmation(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.55)
        start_s = service.clock.monotonic()
        service.host.free = GIB // 2
        await asyncio.sleep(1)
        assert service.since(start_s) == [(0.05, "memory"), (0.15, "memory")]
        assert service.last.node_reading.memory_free_bytes == GIB // 2

    scene(story)


def test_below_the_watermark_every_probe_is_a_sample(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.55)
        start_s = service.clock.monotonic()
        service.host.free = TOTAL // 10_000
        await asyncio.sleep(1)
        assert service.since(start_s) == [(round(0.05 + n / 10, 2), "memory") for n in range(10)]

    scene(story)


def test_a_new_pod_is_told_at_once(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.55)
        start_s = service.clock.monotonic()
        service.host.listed = [POD, Pod(uid="bb", name="batch", qos="reclaimed_cores")]
        service.host.number = 2
        await asyncio.sleep(0.3)
        assert service.since(start_s) == [(0.05, "pods"), (0.15, "pods")]
        assert [reading.pod.name for reading in service.last.pods] == ["batch", "web"]

    scene(story)


def test_pods_are_listed_again_only_when_they_may_have_changed(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(20)
        assert service.host.listings == 1

    scene(story)


def test_without_the_list_of_pods_nothing_is_said_and_health_says_why(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.55)
        assert service.app.health().ok
        start_s = service.clock.monotonic()
        service.host.listed, service.host.number = None, 2
        await asyncio.sleep(5)
        assert service.since(start_s) == []
        health = service.app.health()
        assert (health.ok, health.why) == (False, "the list of pods is torn")
        assert health.input_age_s == pytest.approx(5.45)
        assert service.host.listings <= 6, "a torn list must not be read with every probe"
        service.host.listed = [POD]
        await asyncio.sleep(2.1)
        assert service.app.health().ok
        assert len(service.since(start_s)) == 1

    scene(story)


def test_a_host_that_cannot_be_read_is_no_sample_either(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.55)
        service.host.failing = "too many open files"
        before = len(service.samples)
        await asyncio.sleep(4)
        assert len(service.samples) == before
        assert "too many open files" in service.app.health().why

    scene(story)


def test_a_failing_source_is_in_health_while_the_rest_goes_on(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.failures = {"memory": "sublet/shared_cores: invalid literal"}
        await asyncio.sleep(2.5)
        assert service.host.shown == (3, 0, 1)
        health = service.app.health()
        assert (health.ok, health.why) == (False, "source memory: sublet/shared_cores: invalid literal")
        assert service.said[-1] == (2.1, "period")
        service.host.failures = {}
        await asyncio.sleep(2)
        assert service.app.health().ok

    scene(story)


def test_health_before_the_first_sample_and_when_passes_stop(virtual: Virtual) -> None:
    async def story() -> None:
        service = Service()
        assert service.app.health().why == "no sample yet"
        async with running() as live:
            await asyncio.sleep(1)
            assert live.app.health().ok
        await asyncio.sleep(10)  # nobody runs it any more
        health = live.app.health()
        assert not health.ok
        assert "s old" in health.why

    virtual(story())


def test_pressure_wakes_a_pass_between_two_probes_and_backs_off_when_it_brings_nothing_new(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.52)
        start_s = service.clock.monotonic()
        for _ in range(400):
            service.host.wake()
            await asyncio.sleep(0.01)
        moments = [at_s for at_s, trigger in service.since(start_s) if trigger == "psi"]
        gaps = [round(after - before, 1) for before, after in itertools.pairwise(moments)]
        assert moments[0] == 0.0, "the first one is answered at once"
        assert gaps == [0.2, 0.4, 0.8, 1.6]

    scene(story)


def test_pressure_with_news_keeps_the_gate_open(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(6.52)
        start_s = service.clock.monotonic()
        for step in range(40):
            service.host.number = step + 2  # something new each time, seen by pressure before the next probe
            service.host.wake()
            await asyncio.sleep(0.05)
        assert len(service.since(start_s)) >= 15

    scene(story)


def test_a_counter_that_goes_back_is_named_while_its_figure_is_missing(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(2.5)
        service.host.used_ns -= 10**11
        await asyncio.sleep(2)
        assert service.last.pods[0].containers[0].cpu_usage_cores is None
        assert "went back" in service.app.state()["missing"]["container aa/main: cpu_usage_cores"]
        assert service.host.shown[1] == 2
        await asyncio.sleep(2)
        assert service.app.state()["missing"] == {}

    scene(story)


def test_a_counter_of_the_node_that_goes_back_makes_it_unwell_for_that_pass(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.node_ns = 10**9
        await asyncio.sleep(2.5)
        assert service.app.health().ok
        service.host.node_ns = 1
        await asyncio.sleep(2)
        assert service.app.health().why == "node: cpu_usage_cores: cpu_usage_ns went back from 1000000000 to 1"
        await asyncio.sleep(2)
        assert service.app.health().ok

    scene(story)


def test_a_defect_in_a_probe_ends_the_service(virtual: Virtual) -> None:
    async def story() -> None:
        service = Service()
        task = asyncio.create_task(service.app.run())
        await asyncio.sleep(1)
        service.host.probing = lambda: (1 // 0, 0)
        await asyncio.wait([task], timeout=1)
        assert isinstance(task.exception(), ZeroDivisionError)

    virtual(story())


def test_state_is_the_last_sample_as_json(scene: Scene) -> None:
    async def story(service: Service) -> None:
        assert service.app.state() == {"sample": None, "missing": {}}
        await asyncio.sleep(1)
        state = json.loads(json.dumps(service.app.state()))
        assert state["sample"]["seq"] == 2
        assert state["sample"]["node_reading"]["online_cpus"] == "0-3"

    scene(story)


def test_a_new_period_holds_from_the_next_probe_on_and_a_bad_one_is_refused_whole(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(2.5)
        service.app.reconfigure({"period_s": 0.5})
        with pytest.raises(BadConfig, match="period_s"):
            service.app.reconfigure({"period_s": -1, "tenant_step_cores": 3})
        start_s = service.clock.monotonic()
        await asyncio.sleep(2)
        assert len(service.since(start_s)) == 4
        service.app.reconfigure({})  # the overlay is gone: the file's value is back
        start_s = service.clock.monotonic()
        await asyncio.sleep(4)
        assert len(service.since(start_s)) == 2

    scene(story)


def test_an_unknown_setting_is_refused_with_the_one_that_was_meant(virtual: Virtual) -> None:
    async def story() -> None:
        with pytest.raises(BadConfig, match="period_s"):
            Service({"periods_s": 1})

    virtual(story())


def test_closing_disarms_the_kernels_triggers(virtual: Virtual) -> None:
    async def story() -> None:
        async with running() as service:
            await asyncio.sleep(0.5)
        assert service.host.closed

    virtual(story())
