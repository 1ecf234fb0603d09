"""The writer of nodes' entries: one that cannot be written holds up no other, and what is as it was costs nothing."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from present import present

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
from shared.fakes.memory_broker import MemoryBucket
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import Entry

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


@pytest.mark.parametrize("changed", ["n1", "n2", "n3"])
async def test_a_bucket_that_comes_back_from_an_older_copy_is_brought_to_what_is_wanted(changed: str) -> None:
    """Whichever entry was written since: the others are as they were, and it alone shows that the copy is older."""
    bus, entries = await writer()
    wanted = {name: asking(1) for name in ("n1", "n2", "n3")}
    await entries.write(wanted)
    bucket = bus.broker.buckets[CONFIG_BUCKET]
    copied, revision = dict(bucket.entries), bucket.revision
    wanted[changed] = asking(2)
    await entries.write(wanted)
    bucket.entries, bucket.revision = copied, revision
    await entries.write(wanted)
    assert [await settings_at(bus, name) for name in wanted] == ["yy" if name == changed else "y" for name in wanted]


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


class Calls:
    """How often the bucket of a bus was read and written."""

    def __init__(self, bus: MemoryBus, patch: pytest.MonkeyPatch) -> None:
        self._counts = {"read": 0, "written": 0}
        get, put = bus.get, bus.put

        async def counted_get(bucket: str, key: str) -> Entry | None:
            self._counts["read"] += 1
            return await get(bucket, key)

        async def counted_put(bucket: str, key: str, value: bytes, headers: Mapping[str, str] | None = None) -> int:
            self._counts["written"] += 1
            return await put(bucket, key, value, headers)

        patch.setattr(bus, "get", counted_get)
        patch.setattr(bus, "put", counted_put)

    def since(self) -> tuple[int, int]:
        """Reads and writes since this was asked last."""
        found = self._counts["read"], self._counts["written"]
        self._counts.update(read=0, written=0)
        return found


WANTED = {name: asking(1) for name in ("n1", "n2", "n3")}
AT_REST = (1, 0)
"""One key alone is read, the one that was written last."""


async def test_what_another_one_wrote_is_set_right_by_whoever_leads_next(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, entries = await writer()
    calls = Calls(bus, monkeypatch)
    for _ in range(2):
        await entries.write(WANTED)
    await bus.put(CONFIG_BUCKET, node_config_key("n2"), b"{}")
    calls.since()
    entries.forget()
    await entries.write(WANTED)
    assert calls.since() == (3, 1)
    assert await settings_at(bus, "n2") == "y"


async def test_an_entry_that_another_one_wrote_over_is_set_right_once_and_then_rests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus, entries = await writer()
    await entries.write(WANTED)
    newest = max(WANTED, key=lambda name: bus.broker.buckets[CONFIG_BUCKET].entries[node_config_key(name)].revision)
    await bus.put(CONFIG_BUCKET, node_config_key(newest), b"{}")
    calls = Calls(bus, monkeypatch)
    await entries.write(WANTED)
    assert calls.since() == (1 + len(WANTED), 1)
    for _ in range(3):
        await entries.write(WANTED)
        assert calls.since() == AT_REST
    assert await settings_at(bus, newest) == "y"


async def test_an_entry_that_another_one_wrote_alike_is_read_once_and_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The revision tells that it is not what was written: as in a bucket that was lost and made again."""
    bus, entries = await writer()
    await entries.write(WANTED)
    for name in WANTED:
        key = node_config_key(name)
        await bus.put(CONFIG_BUCKET, key, present(bus.broker.buckets[CONFIG_BUCKET].entries[key].value))
    calls = Calls(bus, monkeypatch)
    await entries.write(WANTED)
    assert calls.since() == (1 + len(WANTED), 0)
    await entries.write(WANTED)
    assert calls.since() == AT_REST


async def test_an_older_copy_that_has_counted_on_to_the_same_revision_shows_by_its_value() -> None:
    bus, entries = await writer()
    await entries.write(WANTED)
    bucket = bus.broker.buckets[CONFIG_BUCKET]
    copied, revision = dict(bucket.entries), bucket.revision
    await entries.write({**WANTED, "n2": asking(2)})
    bucket.entries, bucket.revision = copied, revision
    await bus.put(CONFIG_BUCKET, node_config_key("n2"), b"{}")
    await entries.write({**WANTED, "n2": asking(2)})
    assert await settings_at(bus, "n2") == "yy"


async def test_a_bucket_whose_revisions_begin_anew_is_compared_once_and_not_in_each_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bus, entries = await writer()
    for size in (1, 2, 3):
        await entries.write({name: asking(size) for name in WANTED})
    bus.broker.buckets[CONFIG_BUCKET] = MemoryBucket()
    calls = Calls(bus, monkeypatch)
    await entries.write(WANTED)
    assert calls.since() == (1 + len(WANTED), len(WANTED))
    await entries.write(WANTED)
    assert calls.since() == AT_REST


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
