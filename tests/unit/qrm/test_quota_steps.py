"""qrm moves a throttled tenant's quota with the samples, in virtual time, and gives it back whenever it must."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from qrm_world import Lease, Node, Run

from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.core.cgroups.knobs import Knob
from shared.wire import Wire
from sublet.views.answer_shapes import well_shaped

WEB = Pod(uid="a1", name="web", containers=(Container(name="c", cpu_limit_millis=1000),))
GROUP = "sublet/shared_cores/poda1/c"
ON = {"enabled": True}


class Throttled(Node):
    """A node with one tenant, which is throttled in every sample."""

    def __init__(self, folder: Path, burst: dict[str, Any], **qrm: Any) -> None:
        super().__init__(folder, Lease(), quota_burst=burst, **qrm)
        for group in (GROUP.rpartition("/")[0], GROUP):
            self.plain.add(group)
        self.plain.cgroups.write(GROUP, Knob.CPU_QUOTA, 1000)
        self.pods.known = [WEB]
        self.metrics = Wire(self.bus, self.clock, node="n1", service="metrics")

    async def sampled(self, throttled: float | None = 0.5, busy: float = 4.0) -> int:
        """A sample and the advice that rests on it, two seconds later; the quota then."""
        await asyncio.sleep(2)
        reading = PodReading(pod=WEB, containers=(ContainerReading(name="c", throttled_ratio=throttled),))
        await self.metrics.publish(
            self.metrics.stamp(
                NodeSample, window_s=2.0, pods=(reading,),
                node_reading=NodeReading(online_cpus="0-47", cpu_usage_cores=busy),
            )
        )  # fmt: skip
        await self.hear(self.advice())
        return self.quota

    @property
    def quota(self) -> int:
        return int(self.plain.cgroups.read(GROUP, Knob.CPU_QUOTA) or 0)


Story = Callable[[Throttled], Awaitable[None]]


@pytest.fixture
def tell(tmp_path: Path, virtual: Run) -> Callable[..., None]:
    def of(story: Story, burst: dict[str, Any] | None = None, **qrm: Any) -> None:
        async def whole() -> None:
            node = Throttled(tmp_path, ON if burst is None else burst, **qrm)
            async with node:
                # Before the first pass nobody has asked for samples.
                await node.hear(node.advice())
                await story(node)

        virtual(whole())

    return of


def test_it_rises_while_cpus_are_idle_and_falls_while_they_are_not(tell: Callable[..., None]) -> None:
    async def story(node: Throttled) -> None:
        assert [await node.sampled() for _ in range(3)] == [1200, 1440, 1728]
        assert await node.sampled(busy=23.0) == 1728
        assert [await node.sampled(busy=24.0) for _ in range(3)] == [1382, 1105, 1000]
        assert await node.sampled() == 1200

    tell(story)


def test_without_samples_it_falls_though_advice_goes_on(tell: Callable[..., None]) -> None:
    async def story(node: Throttled) -> None:
        assert [await node.sampled(), await node.sampled()] == [1200, 1440]
        await asyncio.sleep(9)
        assert node.quota == 1440
        await asyncio.sleep(9)
        assert node.quota == 1000

    tell(story)


def test_what_does_not_throttle_any_more_is_held_and_then_falls(tell: Callable[..., None]) -> None:
    async def story(node: Throttled) -> None:
        await node.sampled()
        assert {await node.sampled(0.0) for _ in range(4)} == {1200}
        assert await node.sampled(0.0) == 1000

    tell(story, ON | {"hold_s": 10})


def test_off_it_asks_for_no_samples(tell: Callable[..., None]) -> None:
    async def story(node: Throttled) -> None:
        assert await node.sampled() == 1000
        assert node.app.state()["quota_burst"] is None
        node.app.reconfigure({"quota_burst": ON})
        await asyncio.sleep(1)
        assert await node.sampled() == 1200
        node.app.reconfigure({"quota_burst": {"enabled": False}})
        await asyncio.sleep(1)
        assert node.quota == 1000

    tell(story, {})


@pytest.mark.parametrize("mode", ["observe", "dry-run"])
def test_a_node_that_does_not_enforce_moves_nothing_and_gives_back_what_it_moved(
    tell: Callable[..., None], mode: str
) -> None:
    async def story(node: Throttled) -> None:
        assert await node.sampled() == 1200
        node.app.reconfigure({"mode": mode})
        assert await node.sampled() == 1000
        node.app.reconfigure({"mode": "enforce"})
        assert await node.sampled() == 1440, "by the last sample, and by the new one"

    tell(story)


def test_a_stop_gives_it_back(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Throttled(tmp_path, ON)
        async with node:
            await node.hear(node.advice())
            assert await node.sampled() == 1200
        assert node.quota == 1000

    virtual(story())


def test_a_life_that_begins_anew_begins_at_the_limits(tmp_path: Path, virtual: Run) -> None:
    async def story() -> None:
        node = Throttled(tmp_path, ON)
        async with node:
            await node.hear(node.advice())
            assert [await node.sampled(), await node.sampled()] == [1200, 1440]
            kept = {path: path.read_bytes() for path in (tmp_path / "state").iterdir() if path.is_file()}
        # As if it had been killed: what it wrote is in force, and the record says so.
        node.plain.cgroups.write(GROUP, Knob.CPU_QUOTA, 1440)
        for path, content in kept.items():
            path.write_bytes(content)
        async with Node(tmp_path, Lease(), plain=node.plain) as after:
            after.pods.known = [WEB]
            await asyncio.sleep(1)
            assert node.quota == 1000

    virtual(story())


def test_what_is_told_of_it_can_be_shown(tell: Callable[..., None]) -> None:
    async def story(node: Throttled) -> None:
        await node.sampled()
        told = node.app.state()["quota_burst"]
        assert well_shaped("qrm", {"quota_burst": told}) == {"quota_burst": told}
        assert told["containers"][0]["quota_millis"] == 1200

    tell(story)
