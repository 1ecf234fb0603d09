"""The writer of single nodes' configuration in the bucket: the settings behind their config objects, kind over kind.

An entry holds the settings, which the node's services read, and under `katalyst` where they are from. So a node that
keeps an older state of an object (canary, pause, a refused change) keeps its settings, and a new leader finds them.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from services.central.core.config import encode_config
from services.central.core.rollout.plan import ConfigSource
from services.central.leadership.leader import Leader
from shared.contracts.bus.subjects import CONFIG_BUCKET, MAX_CONFIG_BYTES
from shared.contracts.readiness import entry_hash, node_config_key
from shared.core.text.json_text import read_json_object
from shared.errors import Refused
from shared.ports import Bus
from shared.settings import merge

log = structlog.get_logger()

SOURCES = "katalyst"
PARALLEL = 16


class NodeEntries:
    """The bucket's keys of single nodes, read once and written when they must change, by the leader alone."""

    def __init__(self, bus: Bus, leader: Leader) -> None:
        self._bus, self._leader = bus, leader
        self._known: dict[str, bytes | None] = {}

    def forget(self) -> None:
        """Read everything again: somebody else may have led."""
        self._known.clear()

    async def write(self, wanted: Mapping[str, Mapping[str, ConfigSource]]) -> None:
        """By node the sources of each kind, kinds in the order in which the later goes before the earlier.

        Raises:
            SubletError: some could not be read or written; all others are done.
        """
        if self._known:
            await self._notice_a_new_bucket()
        width = asyncio.Semaphore(PARALLEL)

        async def one(node: str) -> None:
            async with width:
                await self._write(node, wanted[node])

        # All of them to their end, and only then the first error: one node's entry must not hold up the others.
        done = await asyncio.gather(*(one(node) for node in sorted(wanted)), return_exceptions=True)
        for failure in done:
            if isinstance(failure, BaseException):
                raise failure

    async def _notice_a_new_bucket(self) -> None:
        # One key is enough: a bucket is lost as a whole, and made again empty.
        node = min(self._known)
        entry = await self._bus.get(CONFIG_BUCKET, node_config_key(node))
        if (entry.value if entry else None) != self._known[node]:
            self._known.clear()

    async def _write(self, node: str, sources: Mapping[str, ConfigSource]) -> None:
        key = node_config_key(node)
        if node not in self._known:
            entry = await self._bus.get(CONFIG_BUCKET, key)
            self._known[node] = entry.value if entry else None
        there = self._known[node]
        if there is None and not sources:
            return
        value = encode_config(_document(sources, there))
        if value == there:
            return
        # The bucket asks nobody: unlike objects, entries have no gate of their own.
        self._leader.require()
        revision = await self._bus.put(CONFIG_BUCKET, key, value)
        # Only after the write: one that failed is compared and tried again.
        self._known[node] = value
        log.info("config.published", node=node, revision=revision, bytes=len(value))

    def applied(self, node: str, said: str | None) -> bool:
        """Whether what a node says that it works with is what it should work with."""
        there = self._known.get(node)
        return there is not None and said == entry_hash(there)


def _document(sources: Mapping[str, ConfigSource], there: bytes | None) -> dict[str, Any]:
    before = _sources(there)
    kept: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for kind, source in sources.items():
        config = source.config.model_dump(mode="json")
        old = before.get(kind) or {}
        if source.settings is not None:
            kept[kind] = {**config, "settings": dict(source.settings)}
        elif old:  # an older state of the object, or one that was read by a leader before: the last good settings stay
            kept[kind] = old
        else:
            continue
        settings = merge(settings, kept[kind]["settings"])
    return {**settings, SOURCES: kept} if kept else {}


def _sources(value: bytes | None) -> dict[str, Any]:
    try:
        document = read_json_object(value or b"{}", what="a node's entry", max_bytes=MAX_CONFIG_BYTES)
        found = document.get(SOURCES) or {}
        return {kind: row for kind, row in found.items() if isinstance(row["settings"], dict)}
    except (Refused, AttributeError, KeyError, TypeError) as error:
        log.warning("config.entry_unreadable", why=str(error))
        return {}
