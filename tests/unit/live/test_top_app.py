"""The live screen with 30 pods in three pools: what is on it at two sizes, and what each key does."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable

from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, NumaReading, PodReading, PoolReading
from sublet.live.app import TopApp
from sublet.views.facts import NodeFacts, read

ENVELOPE = {"node": "node1", "boot_id": "0" * 16, "sent_at": datetime(2026, 1, 1, tzinfo=UTC)}
POOLS = {"share": "0-11", "flink": "12-15", "reclaim": "16-47"}
SMALL, LARGE = (80, 24), (200, 60)


def facts(shift: float = 0.0) -> NodeFacts:
    """Ten pods in each pool; of each the number decides CPU, and the other way round memory."""
    names = [(pool, f"{pool}-{number}") for pool in POOLS for number in range(10)]
    used = {name: 0.1 * number + shift for number, (_, name) in enumerate(names)}
    sample = NodeSample(
        **ENVELOPE, seq=1,
        node_reading=NodeReading(online_cpus="0-47", cpu_usage_cores=20.5, load1=21.0, memory_total_bytes=200 << 30,
                                 memory_available_bytes=90 << 30),
        numas=(NumaReading(numa=0, cpus="0-23"), NumaReading(numa=1, cpus="24-47")),
        pools=tuple(PoolReading(pool=pool, cpu_usage_cores=3.0, memory_usage_bytes=1 << 30) for pool in POOLS),
        pods=tuple(
            PodReading(
                pod=Pod(uid=f"{number:x}f", name=name, containers=(Container(name="main"),)),
                containers=(
                    ContainerReading(name="main", cpu_usage_cores=used[name], memory_usage_bytes=(99 - number) << 20),
                ),
            )
            for number, (_, name) in enumerate(names)
        ),
    )  # fmt: skip
    allocation = Allocation(
        **ENVELOPE, seq=1, status="applied",
        pools=tuple(PoolAllocation(pool=pool, cpus=cpus) for pool, cpus in POOLS.items()),
        pods=tuple(
            PodAllocation(uid=f"{number:x}f", namespace="default", name=name, pool=pool, cpus=POOLS[pool])
            for number, (pool, name) in enumerate(names)
        ),
        reclaimed_cpu_millis=1000, reclaimed_memory_bytes=1 << 30, lease_left_s=9.0,
    )  # fmt: skip
    return read("node1", {
        "metrics": {"sample": sample.model_dump(mode="json")},
        "qrm": {"allocation": allocation.model_dump(mode="json")},
        "evictor": None,
    })  # fmt: skip


class Services:
    """Answers that change, and how often they were asked for."""

    def __init__(self, answer: NodeFacts) -> None:
        self.answer, self.asked = answer, 0

    async def look(self) -> NodeFacts:
        self.asked += 1
        return self.answer


@asynccontextmanager
async def running(size: tuple[int, int], services: Services | None = None) -> AsyncIterator[tuple[TopApp, Pilot[None]]]:
    app = TopApp((services or Services(facts())).look, period_s=3600.0)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def lines(app: TopApp) -> list[str]:
    """The text of the screen, from its picture."""
    found: dict[float, str] = {}
    for x, y, text in re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', app.export_screenshot()):
        column = round(float(x) / 12.2)
        found[float(y)] = found.get(float(y), "").ljust(column) + html.unescape(text).replace("\xa0", " ")
    return [found[y].rstrip() for y in sorted(found)]


def names(app: TopApp) -> list[str]:
    table = app.query_one(DataTable)
    return [str(table.get_row_at(index)[0]).strip() for index in range(table.row_count)]


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_every_figure_is_whole_and_no_pool_is_lost(size: tuple[int, int]) -> None:
    async with running(size) as (app, pilot):
        screen = lines(app)
        head = next(line for line in screen if "pool / pod" in line)
        assert all(title in head for title in ("CPU", "of its CPUs", "memory", "load1", "count"))
        assert any("30 pods, by cpu" in line for line in screen)
        assert any("reclaim" in line for line in screen) or size == SMALL
        assert not any("…" in line for line in screen if "default/" in line)
        assert len(names(app)) == 33
        assert [name for name in names(app) if name in POOLS] == list(POOLS)
        assert "q end" in screen[-1]
        await pilot.press("end")
        await pilot.pause()
        assert any("default/reclaim-0" in line for line in lines(app))


async def test_the_cpu_map_is_there_where_there_is_room_and_when_asked_for() -> None:
    async with running(SMALL) as (app, pilot):
        assert not app.query_one("#map").display
        await pilot.press("p")
        assert app.query_one("#map").display
    async with running(LARGE) as (app, pilot):
        assert app.query_one("#map").display
        await pilot.press("p")
        assert not app.query_one("#map").display


async def test_sorting_by_each_figure() -> None:
    async with running(SMALL) as (app, pilot):
        assert names(app)[:3] == ["share", "default/share-9", "default/share-8"]
        await pilot.press("m")
        assert names(app)[:3] == ["share", "default/share-0", "default/share-1"]
        await pilot.press("n")
        assert names(app)[11:13] == ["flink", "default/flink-0"]
        await pilot.press("s")
        assert names(app)[11:13] == ["flink", "default/flink-9"]


async def test_a_filter_shows_the_pods_that_hold_it_and_goes_away_again() -> None:
    async with running(SMALL) as (app, pilot):
        await pilot.press("slash", *"flink-3", "enter")
        assert names(app) == ["flink", "default/flink-3"]
        assert any("1 of 30 pods have 'flink-3' in their name" in line for line in lines(app))
        await pilot.press("slash", "escape")
        assert len(names(app)) == 33
        await pilot.press("slash", *"nobody")
        assert names(app) == []


async def test_letters_of_a_filter_are_no_commands() -> None:
    async with running(SMALL) as (app, pilot):
        await pilot.press("slash", "q", "m")
        assert app.is_running
        assert any("have 'qm' in their name" in line for line in lines(app))


async def test_the_cursor_stays_with_its_pod_when_the_order_changes() -> None:
    async with running(SMALL) as (app, pilot):
        await pilot.press("down")
        table = app.query_one(DataTable)
        assert names(app)[table.cursor_row] == "default/share-9"
        await pilot.press("m")
        assert names(app)[table.cursor_row] == "default/share-9"


async def test_a_held_picture_is_not_asked_for_anew_and_help_lists_the_keys() -> None:
    services = Services(facts())
    async with running(SMALL, services) as (app, pilot):
        await app.refresh_facts()
        asked = services.asked
        await pilot.press("space")
        await app.refresh_facts()
        assert services.asked == asked
        assert any("held" in line for line in lines(app))
        await pilot.press("space", "question_mark")
        await app.refresh_facts()
        assert services.asked == asked + 1
        assert any("only pods with these letters" in line for line in lines(app))


async def test_q_ends_it_with_nothing_said() -> None:
    async with running(SMALL) as (app, pilot):
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running
    assert app.return_code == 0


async def test_services_that_are_silent_are_named_and_the_screen_stays() -> None:
    services = Services(read("node1", {"metrics": None, "qrm": None}))
    async with running(SMALL, services) as (app, _):
        assert any("metrics does not answer" in line for line in lines(app))
        assert any("metrics, qrm did not answer" in line for line in lines(app))
        services.answer = facts()
        await app.refresh_facts()
        assert len(names(app)) == 33


async def test_a_name_that_would_steer_the_terminal_is_shown_escaped() -> None:
    hostile = facts()
    pod = hostile.sample.pods[0] if hostile.sample else None
    assert pod is not None
    renamed = pod.model_copy(update={"pod": pod.pod.model_copy(update={"name": "a\x1b[2J[red]b"})})
    sample = hostile.sample.model_copy(update={"pods": (renamed,)}) if hostile.sample else None
    services = Services(NodeFacts("node1", {}, sample, hostile.allocation, None, ()))
    async with running(SMALL, services) as (app, _):
        assert "default/a\\x1b[2J[red]b" in names(app)
