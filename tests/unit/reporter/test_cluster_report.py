"""When the node speaks to the cluster: at once where it must, in its time else, and not at all unless asked to."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fixture_types import Virtual
from reporter_node import Node, Play, player

from services.reporter.app import ReporterApp
from services.reporter.cluster import report
from services.reporter.ports import ReporterPorts
from services.reporter.settings import NAME, ReporterSettings
from shared.app import Context
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.figures import FIGURES_PERIOD_S, PodFigures
from shared.contracts.cluster.offer import OFFER_PERIOD_S, NodeOffer
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading
from shared.settings import CommonSettings, section
from shared.wire import Wire

GIB = 1 << 30
BOTH = {"cluster": {"offer": True, "figures": True}}


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story in virtual time."""
    return player(virtual)


class Heard:
    """What somebody in the cluster hears, with the time at which it came."""

    def __init__(self) -> None:
        self.offers: list[tuple[float, NodeOffer]] = []
        self.figures: list[tuple[float, PodFigures]] = []

    async def listen(self, node: Node) -> "Heard":
        began_s = node.clock.monotonic()

        def at() -> float:
            return node.clock.monotonic() - began_s

        await node.bus.subscribe(
            state_subject(NodeOffer, "*"), lambda m: self.offers.append((at(), NodeOffer.decode(m.data)))
        )
        await node.bus.subscribe(
            state_subject(PodFigures, "*"), lambda m: self.figures.append((at(), PodFigures.decode(m.data)))
        )
        return self

    @property
    def cpu_millis(self) -> list[int | None]:
        return [None if offer.reclaimed is None else offer.reclaimed.cpu_millis for _, offer in self.offers]


async def sample(node: Node, cores: float = 1.0, **fields: Any) -> None:
    wire = node.wires["metrics"]
    used = ContainerReading(name="c", cpu_usage_cores=cores, memory_rss_bytes=GIB)
    reading = NodeReading(online_cpus="0-7", cpu_usage_cores=cores, memory_total_bytes=8 * GIB,
                          memory_available_bytes=6 * GIB)  # fmt: skip
    pods = (PodReading(pod=Pod(uid="aa", name="p"), containers=(used,)),)
    await wire.publish(wire.stamp(NodeSample, **{"window_s": 2.0, "node_reading": reading, "pods": pods, **fields}))


async def go_on(node: Node, seconds: int, cpu_millis: int = 4000) -> None:
    """An allocation and a sample each two seconds."""
    for _ in range(seconds // 2):
        await node.offer(cpu_millis)
        await sample(node)
        await asyncio.sleep(1.99)


def test_nothing_is_said_and_nothing_kept_unless_somebody_wants_it(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        await go_on(node, 60)
        assert node.app.state()["cluster"] == {"offers": 0, "figures": 0, "cpus": 0}

    play(story)
    assert (heard.offers, heard.figures) == ([], [])


def test_an_offer_that_does_not_change_is_said_in_its_time(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        await go_on(node, 100)

    play(story)
    times = [at_s for at_s, _ in heard.offers]
    assert len(times) == pytest.approx(10, abs=1)
    assert max(b - a for a, b in itertools.pairwise(times)) <= OFFER_PERIOD_S + 1
    assert set(heard.cpu_millis) == {4000}


def test_a_fall_is_said_at_once_and_a_small_rise_later(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        for millis in (4000, 3999, 4100, 100):
            await node.offer(millis)
        assert heard.cpu_millis == [4000, 3999, 100]

    play(story)


def test_the_offer_is_said_before_the_node_is_written(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        node.writer.failing = True
        await node.offer(4000)
        assert (heard.cpu_millis, node.writer.offers) == ([4000], [])

    play(story)


def test_uses_are_told_while_they_are_new(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        await go_on(node, 30)
        for _ in range(20):  # no sample any more
            await node.offer(4000)
            await asyncio.sleep(2)

    play(story)
    early, late = heard.offers[2][1], heard.offers[-1][1]
    assert early.usage_age_s is not None
    assert early.usage_age_s < 3
    assert [row.used.cpu_millis for row in early.pods.rows()] == [1000]
    assert (early.used.cpu_millis, early.window_s, early.topology_policy) == (1000, 60, "numeric_container")
    assert (late.usage_age_s, late.pods.uids, late.used.cpu_millis, late.numas) == (None, (), None, ())
    assert (late.stale, late.reclaimed is not None) == (False, True), "the offer itself is fresh"


def test_an_offer_of_which_nothing_new_is_heard_says_that_it_is_stale(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        await node.offer(4000)
        await asyncio.sleep(35)
        assert [offer.stale for _, offer in heard.offers][-1]

    play(story)
    assert set(heard.cpu_millis) == {4000}


def test_figures_come_in_their_time_and_never_of_an_old_sample(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        await go_on(node, 60)
        said = len(heard.figures)
        await asyncio.sleep(60)
        quiet = len(heard.figures)
        assert quiet <= said + 1
        await go_on(node, 4)
        assert len(heard.figures) == quiet + 1

    play(story)
    times = [at_s for at_s, _ in heard.figures[:4]]
    assert [round(b - a) for a, b in itertools.pairwise(times)] == [FIGURES_PERIOD_S] * 3
    row = next(row for row in heard.figures[0][1].rows() if row.namespace)
    assert row.figures["pod_cpu_usage"] == 1.0


def test_what_was_lost_with_the_bus_is_said_when_it_is_back(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        await node.offer(4000)
        node.bus.go_offline()
        await asyncio.sleep(3)
        node.bus.go_online()
        assert heard.cpu_millis == [4000]
        await node.offer(1000)
        assert heard.cpu_millis == [4000, 1000]

    play(story)


def test_switched_off_it_is_silent_and_switched_on_again_it_begins_anew(play: Play) -> None:
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        await go_on(node, 20)
        node.app.reconfigure({})
        heard.offers.clear()
        heard.figures.clear()
        await go_on(node, 40)
        assert (heard.offers, heard.figures) == ([], [])
        node.app.reconfigure(BOTH)
        await node.offer(4000)
        assert heard.cpu_millis == [4000]

    play(story)


def test_a_new_life_speaks_at_once_under_a_new_name(virtual: Virtual) -> None:
    heard = Heard()

    async def story() -> None:
        node = Node()
        await heard.listen(node)
        for _ in range(2):
            async with started(node):
                await node.offer(4000)

    virtual(story())
    assert [offer.seq for _, offer in heard.offers] == [1, 1]
    assert len({offer.boot_id for _, offer in heard.offers}) == 2


@contextlib.asynccontextmanager
async def started(node: Node) -> AsyncIterator[None]:
    """One life of the reporter of a node."""
    wire = Wire(node.bus, node.clock, node="node1", service="reporter")
    raw = {NAME: BOTH}
    app = ReporterApp(
        Context(wire, node.clock, CommonSettings(), raw),
        ReporterPorts(node.writer),
        section(ReporterSettings, raw, NAME),
    )
    task = asyncio.create_task(app.run())
    await asyncio.sleep(0.01)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await app.close()


def test_withdrawn_means_none(virtual: Virtual) -> None:
    heard = Heard()

    async def story() -> None:
        node = Node()
        node.app = ReporterApp(
            node.context,
            ReporterPorts(node.writer, withdrawn=lambda: True),
            section(ReporterSettings, {NAME: BOTH}, NAME),
        )
        await heard.listen(node)
        async with node.running():
            await node.offer(4000)

    virtual(story())
    assert heard.cpu_millis == [0]


def test_a_message_is_never_longer_than_it_is_read(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_OFFER_BYTES", 1000)
    monkeypatch.setattr(report, "MAX_FIGURES_BYTES", 1200)
    heard = Heard()

    async def story(node: Node) -> None:
        await heard.listen(node)
        node.app.reconfigure(BOTH)
        used = ContainerReading(name="c", cpu_usage_cores=1.0)
        pods = tuple(PodReading(pod=Pod(uid=f"{n:x}", name=f"p-{n}"), containers=(used,)) for n in range(100))
        await node.offer(4000)
        await sample(node, pods=pods)
        await asyncio.sleep(20)

    play(story)
    offered, figured = heard.offers[-1][1], heard.figures[-1][1]
    assert len(offered.encode()) <= 1000
    assert len(figured.encode()) <= 1200
    assert len(figured.pods.uids) + figured.pods_left_out == 100
    assert offered.reclaimed is not None
