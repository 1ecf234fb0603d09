"""A node on which nothing moves is measured more seldom, in virtual time."""

import asyncio
import itertools

import pytest
from metrics_world import Scene, Service


def gaps(service: Service) -> list[float]:
    return [round(after - before, 1) for (before, _), (after, _) in itertools.pairwise(service.said)]


def test_a_node_at_rest_is_sampled_more_seldom_and_a_spike_wakes_it_at_once(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.armed = ["/proc/pressure/cpu"]
        await asyncio.sleep(33.0)
        assert service.app.health().ok
        assert (gaps(service)[1:7], set(gaps(service)[7:])) == ([2.0] * 6, {4.0})
        start_s = service.clock.monotonic()
        service.host.load(2.0)
        await asyncio.sleep(0.35)
        assert [trigger for _, trigger in service.since(start_s)] == ["tenant", "tenant"]
        await asyncio.sleep(7.0)
        assert set(gaps(service)[-3:]) == {2.0}, "and the count begins anew"

    scene(story)


def test_a_rise_too_small_to_wake_at_once_ends_a_rest_after_a_period(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.armed = ["/proc/pressure/cpu"]
        await asyncio.sleep(24.5)
        assert gaps(service)[-1] == 4.0
        service.host.load(0.9)
        await asyncio.sleep(3.9)
        assert gaps(service)[-1] < 4.0

    scene(story)


def test_a_pass_that_fails_at_rest_is_tried_again_soon_and_only_once(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.armed = ["/proc/pressure/cpu"]
        await asyncio.sleep(26.3)
        rest_s = gaps(service)[-1]
        service.host.failing = "too many open files"
        while service.host.failed_passes == 0:
            await asyncio.sleep(0.05)
        service.host.failing = None
        await asyncio.sleep(0.2)
        assert gaps(service)[-1] == pytest.approx(rest_s + 0.1, abs=0.06), "younger than readers bear"
        service.host.failing = "too many open files"
        service.host.failed_passes = 0
        await asyncio.sleep(rest_s + 1.0)
        assert service.host.failed_passes == 2, "the next one after a period: the host is not asked without pause"

    scene(story)


async def looks_in(service: Service, span_s: float) -> int:
    service.host.looks = 0
    await asyncio.sleep(span_s)
    return service.host.looks


def test_a_node_at_rest_is_probed_half_as_often_until_it_is_woken(scene: Scene) -> None:
    async def story(service: Service) -> None:
        service.host.armed = ["/proc/pressure/cpu"]
        await asyncio.sleep(33.0)
        assert await looks_in(service, 12.0) in range(55, 66)
        service.host.load(2.0)
        await asyncio.sleep(0.35)
        assert await looks_in(service, 6.0) in range(55, 66)

    scene(story)


def test_without_the_kernels_triggers_no_node_rests(scene: Scene) -> None:
    async def story(service: Service) -> None:
        await asyncio.sleep(30.0)
        assert set(gaps(service)) == {0.1, 2.0}
        assert await looks_in(service, 6.0) in range(55, 66)

    scene(story)
