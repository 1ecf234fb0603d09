"""The leader's passes over companions and configuration: one follows every change at once."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from services.central.cluster.companions import Companions
from services.central.config.control import CONFIG_KINDS, ConfigControl
from services.central.config.node_entries import NodeEntries
from services.central.core.objects.seen import CompanionSeen, companion_of, node_of
from services.central.core.rollout.config_documents import kcc_of, target_of
from services.central.leadership.each_node import EachNode
from services.central.settings import KubernetesSettings
from shared.core.api_kind import CNCS, CNRS, KCCS, NODES
from shared.errors import SubletError
from shared.ports import Clock, ObjectMirror, Objects

log = structlog.get_logger()

RETRY_S = 1.0


class Passes:
    """Mirrors of what a pass is over, and the passes. `applied` is what a node says of its configuration."""

    def __init__(
        self,
        objects: Objects,
        entries: NodeEntries,
        clock: Clock,
        settings: KubernetesSettings,
        applied: Callable[[str], str | None],
    ) -> None:
        self._clock, self._settings, self._applied = clock, settings, applied
        self._wake = asyncio.Event()
        self._config = ConfigControl(objects, entries, clock)
        self._companions = {kind: Companions(objects, clock, kind) for kind in (CNRS, CNCS)}
        self.nodes = objects.mirror(NODES, node_of, self._wake.set)
        self.cnrs = objects.mirror(CNRS, companion_of, self._wake.set)
        self._cncs = objects.mirror(CNCS, companion_of, self._wake.set)
        self._kccs = objects.mirror(KCCS, kcc_of, self._wake.set)
        self._targets = {k.plural: objects.mirror(k, target_of, self._wake.set) for k in CONFIG_KINDS}
        self._cleared_at_s: float | None = None
        self.failure = "no pass yet"
        """Why the newest pass failed; "" after a good one."""

    @property
    def mirrors(self) -> list[ObjectMirror[Any]]:
        """All that a pass is over."""
        return [self.nodes, self.cnrs, self._cncs, self._kccs, *self._targets.values()]

    @property
    def refused(self) -> dict[str, str]:
        """Configuration objects that are refused, and why."""
        return dict(self._config.refused)

    @property
    def not_done(self) -> dict[str, str]:
        """Nodes of which something could not be written, and why."""
        return {node: why for work in self._by_node for node, why in work.failures.items()}

    @property
    def _by_node(self) -> list[EachNode]:
        return [
            *(work for one in self._companions.values() for work in (one.keeping, one.clearing)),
            self._config.pointing,
        ]

    def wake(self) -> None:
        """Something has changed that a pass must see."""
        self._wake.set()

    async def run(self) -> None:
        """Pass by pass until cancelled; trouble is said and tried again."""
        while True:
            await self._woken()
            await self._clock.sleep(self._settings.settle_s)
            self._wake.clear()
            try:
                await self._pass()
            except SubletError as error:
                if str(error) != self.failure:
                    log.warning("cluster.pass_failed", why=str(error))
                self.failure = str(error)
                await self._clock.sleep(RETRY_S)
                self._wake.set()
            else:
                self.failure = ""

    async def _woken(self) -> None:
        again_s = [work.due_in_s for work in self._by_node if work.due_in_s is not None]
        try:
            async with asyncio.timeout(min([self._settings.resync_s, *again_s])):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _pass(self) -> None:
        """Companions, then configuration; each is tried even where another fails."""
        nodes = sorted(self.nodes.objects.values(), key=lambda node: node.name)
        cnrs, cncs = _by_name(self.cnrs.objects), _by_name(self._cncs.objects)
        failures: list[SubletError] = []
        for kind, there in ((CNRS, cnrs), (CNCS, cncs)):
            try:
                await self._companions[kind].keep(nodes, there)
            except SubletError as error:
                failures.append(error)
        try:
            await self._config.pass_over(
                nodes,
                cncs,
                sorted(self._kccs.objects.values(), key=lambda kcc: kcc.kcc.name),
                {plural: list(mirror.objects.values()) for plural, mirror in self._targets.items()},
                self._applied,
            )
            if self._clearing_is_due():
                for kind, there in ((CNRS, cnrs), (CNCS, cncs)):
                    await self._companions[kind].clear(nodes, there)
                self._cleared_at_s = self._clock.monotonic()
        except SubletError as error:
            failures.append(error)
        if failures:
            raise failures[0]

    def _clearing_is_due(self) -> bool:
        since_s = self._cleared_at_s
        return since_s is None or self._clock.monotonic() - since_s >= self._settings.resync_s


def _by_name(objects: Mapping[str, CompanionSeen]) -> dict[str, CompanionSeen]:
    return {one.name: one for one in objects.values()}
