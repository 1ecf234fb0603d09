"""A node's own entry at the node: laid over the one of all nodes, refused alone, and told by its hash."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from fixture_types import Virtual

from shared.adapters.clock import LoopClock
from shared.app import Plan, Runner
from shared.contracts.bus.subjects import CONFIG_BUCKET, state_subject
from shared.contracts.readiness import Health, ServiceHealth, entry_hash, node_config_key
from shared.errors import BadConfig
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings

OWN = node_config_key("node.a")


Answer = tuple[dict[str, Any], str | None, int | None, int, str]
"""The service's settings, the hash and the revision that it said, those of what was put."""
Put = Callable[[str, Any], Awaitable[Answer]]
Story = Callable[[Put], Awaitable[None]]
Play = Callable[[Story], None]


class Service:
    """Takes every setting but `bad: true`."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    async def run(self) -> None:
        await asyncio.Event().wait()

    def health(self) -> ServiceHealth:
        return ServiceHealth(service="evictor", ok=True)

    def state(self) -> Mapping[str, Any]:
        return {}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        if section.get("bad"):
            raise BadConfig("bad = true: want false")
        self.settings = dict(section)

    async def close(self) -> None:
        pass


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story with one service on node.a."""

    async def run(story: Story) -> None:
        bus, service, stop = MemoryBus(), Service(), asyncio.Event()
        common = CommonSettings(node="node.a")
        runner = Runner([Plan("evictor", lambda _: service)], bus, LoopClock(), common)
        told: list[Health] = []
        await bus.subscribe(f"{state_subject(Health, 'node.a')}.>", lambda m: told.append(Health.decode(m.data)))
        await bus.ensure_bucket(CONFIG_BUCKET)
        running = asyncio.create_task(runner.run(stop))
        await asyncio.sleep(1)

        async def put(key: str, document: Any) -> Answer:
            value = document if isinstance(document, bytes) else json.dumps(document).encode()
            revision = await bus.put(CONFIG_BUCKET, key, value)
            await asyncio.sleep(3)
            newest = told[-1]
            return service.settings, newest.health.config_hash, newest.config_rev, revision, entry_hash(value)

        await story(put)
        stop.set()
        assert await running == 0

    return lambda story: virtual(run(story))


def test_a_nodes_own_entry_is_laid_over_the_one_of_all_and_its_hash_is_told(play: Play) -> None:
    async def story(put: Put) -> None:
        settings, said, *_ = await put("global", {"evictor": {"a": {"x": 1, "y": 1}, "b": 1}})
        assert (settings, said) == ({"a": {"x": 1, "y": 1}, "b": 1}, None)
        settings, said, rev, revision, own = await put(OWN, {"evictor": {"a": {"x": 2}}})
        assert (settings, said, rev) == ({"a": {"x": 2, "y": 1}, "b": 1}, own, revision)
        settings, said, *_ = await put("global", {"evictor": {"b": 3}})
        assert (settings, said) == ({"a": {"x": 2}, "b": 3}, own)
        settings, *_ = await put("node.another", {"evictor": {"b": 9}})
        assert settings == {"a": {"x": 2}, "b": 3}

    play(story)


@pytest.mark.parametrize("bad", [{"evictor": {"bad": True}}, {"evictor": []}, b"{", []])
def test_a_bad_entry_leaves_the_last_good_one_and_its_hash_and_does_not_stop_the_other_key(
    play: Play, bad: object
) -> None:
    async def story(put: Put) -> None:
        await put("global", {"evictor": {"b": 1}})
        _, _, rev, _, good = await put(OWN, {"evictor": {"a": 1}})
        settings, said, after, *_ = await put(OWN, bad)
        assert (settings, said, after) == ({"b": 1, "a": 1}, good, rev)
        settings, said, *_ = await put("global", {"evictor": {"b": 2}})
        assert (settings, said) == ({"b": 2, "a": 1}, good)

    play(story)


def test_an_entry_that_another_one_made_impossible_is_taken_when_it_becomes_possible(play: Play) -> None:
    async def story(put: Put) -> None:
        await put("global", {"evictor": {"bad": True}})
        settings, said, _, _, own = await put(OWN, {"evictor": {"a": 1}})
        assert (settings, said) == ({"a": 1}, own)
        settings, said, *_ = await put("global", {"evictor": {"b": 2}})
        assert (settings, said) == ({"a": 1, "b": 2}, own)

    play(story)
