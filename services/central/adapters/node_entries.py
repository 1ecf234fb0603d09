"""Writes the configuration of single nodes to the bucket: what Koordinator's ConfigMap says for a node, overridden
by the node's config objects, kind by kind.

An entry holds the settings, which the node's services read, and under `slo` and `katalyst` their sources. A node that
keeps an older state of an object (canary, pause, a refused change), or of an unusable key of the ConfigMap, therefore
keeps its settings, and a new leader finds them.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from services.central.core.config import encode_config
from services.central.core.rollout.plan import ConfigSource
from services.central.core.slo.node_strategies import NodeStrategies, said_for_entry
from services.central.leadership.leader import Leader
from shared.contracts.bus.subjects import CONFIG_BUCKET, MAX_CONFIG_BYTES
from shared.contracts.readiness import entry_hash, node_config_key
from shared.core.text.json_text import read_json_object
from shared.errors import Refused
from shared.ports import Bus
from shared.settings import merge

log = structlog.get_logger()

SOURCES, SLO = "katalyst", "slo"
PARALLEL = 16
IN_A_TURN = 100
"""Nodes per turn: a pass over thousands of unchanged nodes must not delay other tasks."""

Sources = Mapping[str, ConfigSource]


class NodeEntries:
    """The bucket's keys of single nodes, read once and written on change, only by the leader."""

    def __init__(self, bus: Bus, leader: Leader) -> None:
        self._bus, self._leader = bus, leader
        self._known: dict[str, bytes | None] = {}
        self._settled: dict[str, tuple[Sources, NodeStrategies | None]] = {}
        """The inputs of each known entry; while they are the same there is nothing to do."""
        self._newest: tuple[str, int] = ("", 0)
        """The node whose known entry has the highest revision, and that revision."""
        self.failures: Mapping[str, str] = {}
        """Why a node's entry cannot be what is asked for, as one that is too large, by node."""

    def forget(self) -> None:
        """Read everything again, because another central may have led."""
        self._known.clear()
        self._settled.clear()
        self._newest = ("", 0)

    async def write(self, wanted: Mapping[str, Sources], slo: Mapping[str, NodeStrategies] | None = None) -> None:
        """Write the entries by node from the sources of each kind; later kinds override earlier ones.

        `slo`: by node what the ConfigMap says, which all kinds override; None: it is not followed. A refused entry (too
        large) keeps its content and is named in `failures`.

        Raises:
            SubletError: some could not be read or written; all others are done.
        """
        if self._known:
            await self._notice_a_new_bucket()
        width = asyncio.Semaphore(PARALLEL)

        async def one(node: str) -> None:
            async with width:
                await self._write(node, wanted[node], slo[node] if slo else None)

        # All of them to their end, and only then the first error: one node's entry must not hold up the others.
        failures: dict[str, BaseException] = {}
        names = sorted(wanted)
        for first in range(0, len(names), IN_A_TURN):
            nodes = names[first : first + IN_A_TURN]
            done = await asyncio.gather(*(one(node) for node in nodes), return_exceptions=True)
            failures |= {node: error for node, error in zip(nodes, done, strict=True) if error is not None}
        self._note({node: str(error) for node, error in failures.items() if isinstance(error, Refused)})
        for error in failures.values():
            if not isinstance(error, Refused):
                raise error

    def _note(self, refused: Mapping[str, str]) -> None:
        for why in sorted(set(refused.values()) - set(self.failures.values())):
            log.error("config.entry_refused", why=why, nodes=sum(one == why for one in refused.values()))
        self.failures = refused

    async def _notice_a_new_bucket(self) -> None:
        # One key is enough: a bucket is lost as a whole, and made again empty or from an older copy. The copy may have
        # the others as they are, so it is the one that was written last.
        node, revision = self._newest if self._newest[0] else (min(self._known), 0)
        entry = await self._bus.get(CONFIG_BUCKET, node_config_key(node))
        there = (entry.value, entry.revision) if entry else (None, 0)
        if there != (self._known[node], revision):
            self.forget()

    def _note_revision(self, node: str, revision: int) -> None:
        if revision > self._newest[1]:
            self._newest = node, revision

    async def _write(self, node: str, sources: Sources, strategies: NodeStrategies | None) -> None:
        key = node_config_key(node)
        if node not in self._known:
            entry = await self._bus.get(CONFIG_BUCKET, key)
            self._known[node] = entry.value if entry else None
            self._note_revision(node, entry.revision if entry else 0)
        if self._settled.get(node) == (sources, strategies):
            return
        there = self._known[node]
        document = _document(sources, strategies, there)
        value = encode_config(document)
        nothing = there is None and not sources and not document
        if nothing or value == there:
            self._settled[node] = (sources, strategies)
            return
        self._settled.pop(node, None)
        # The bucket checks no leadership: unlike objects, entries have no gate of their own.
        self._leader.require()
        revision = await self._bus.put(CONFIG_BUCKET, key, value)
        # Only after the write: one that failed is compared and tried again.
        self._known[node] = value
        self._note_revision(node, revision)
        log.info("config.published", node=node, revision=revision, bytes=len(value))

    def applied(self, node: str, said: str | None) -> bool:
        """Return whether a node works with the configuration that it should have, by its own report."""
        there = self._known.get(node)
        return there is not None and said == entry_hash(there)


def _document(sources: Sources, strategies: NodeStrategies | None, there: bytes | None) -> dict[str, Any]:
    entry = _entry(there)
    before = _sources(entry)
    kept: dict[str, Any] = {}
    said, settings = ({}, {}) if strategies is None else said_for_entry(strategies, _mapping(entry.get(SLO)))
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
    origins = {SLO: {key: strategy for key, strategy in said.items() if strategy}, SOURCES: kept}
    return {**settings, **{name: origin for name, origin in origins.items() if origin}}


def _entry(value: bytes | None) -> dict[str, Any]:
    try:
        return read_json_object(value or b"{}", what="a node's entry", max_bytes=MAX_CONFIG_BYTES)
    except Refused as error:
        log.warning("config.entry_unreadable", why=str(error))
        return {}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sources(entry: Mapping[str, Any]) -> dict[str, Any]:
    rows = _mapping(entry.get(SOURCES))
    return {kind: row for kind, row in rows.items() if isinstance(row, dict) and isinstance(row.get("settings"), dict)}
