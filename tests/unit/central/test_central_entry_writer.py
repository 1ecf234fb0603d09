"""The writer of nodes' entries: one that cannot be written holds up no other, and what is as it was costs nothing."""

import asyncio
import json
from typing import Any

import pytest

from services.central.adapters import node_entries
from services.central.adapters.node_entries import NodeEntries
from services.central.core.config import encode_config
from services.central.core.objects.cnc import NodeConfig
from services.central.core.rollout.plan import ConfigSource
from services.central.leadership.leader import Leader
from services.central.settings import LeaseSettings
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import CONFIG_BUCKET, MAX_CONFIG_BYTES
from shared.contracts.readiness import node_config_key
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects

KIND = "evictionconfigurations"


class Leading(Leader):
    """Leads without a lease."""

    def __init__(self) -> None:
        clock = LoopClock()
        super().__init__(MemoryObjects(clock), clock, "me", LeaseSettings())

    def require(self) -> None:
        pass


def asking(size: int) -> dict[str, ConfigSource]:
    return {KIND: ConfigSource(NodeConfig(name="default", hash=str(size)), {"evictor": {"x": "y" * size}})}


async def settings_at(bus: MemoryBus, node: str) -> Any:
    entry = await bus.get(CONFIG_BUCKET, node_config_key(node))
    return json.loads(entry.value)["evictor"]["x"] if entry and entry.value else None


async def writer() -> tuple[MemoryBus, NodeEntries]:
    bus = MemoryBus()
    await bus.ensure_bucket(CONFIG_BUCKET)
    return bus, NodeEntries(bus, Leading())


async def test_an_entry_that_is_too_large_is_named_and_holds_up_no_other() -> None:
    bus, entries = await writer()
    await entries.write({"n1": asking(1), "n2": asking(1)})
    await entries.write({"n1": asking(MAX_CONFIG_BYTES), "n2": asking(2)})
    assert list(entries.failures) == ["n1"]
    assert f"at most {MAX_CONFIG_BYTES} are kept" in entries.failures["n1"]
    assert [await settings_at(bus, node) for node in ("n1", "n2")] == ["y", "yy"]
    await entries.write({"n1": asking(3), "n2": asking(2)})
    assert entries.failures == {}
    assert await settings_at(bus, "n1") == "yyy"


async def test_what_is_as_it_was_is_not_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, entries = await writer()
    worked_out = list[object]()

    def counting(document: Any) -> bytes:
        worked_out.append(document)
        return encode_config(document)

    monkeypatch.setattr(node_entries, "encode_config", counting)
    for _ in range(2):
        await entries.write({f"n{n}": asking(1) for n in range(10)})
    before = len(worked_out)
    await entries.write({f"n{n}": asking(1) for n in range(10)})
    assert len(worked_out) == before
    await entries.write({f"n{n}": asking(2 if n == 3 else 1) for n in range(10)})
    assert len(worked_out) == before + 1
    assert await settings_at(bus, "n3") == "yy"
    await entries.write({f"n{n}": asking(1) for n in range(10)})
    assert await settings_at(bus, "n3") == "y"


async def test_what_another_one_wrote_is_set_right_by_whoever_leads_next() -> None:
    bus, entries = await writer()
    for _ in range(2):
        await entries.write({"n1": asking(1), "n2": asking(1)})
    await bus.put(CONFIG_BUCKET, node_config_key("n2"), b"{}")
    entries.forget()
    await entries.write({"n1": asking(1), "n2": asking(1)})
    assert await settings_at(bus, "n2") == "y"


async def test_others_have_their_turn_while_thousands_of_nodes_are_compared() -> None:
    _, entries = await writer()
    wanted = {f"n{n}": asking(1) for n in range(2000)}
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await entries.write(wanted)
    beside.cancel()
    assert turns >= 20
