"""The writer of config objects: CNCs, statuses, and temporary objects that are over."""

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from services.central.core.objects.cnc import ConfigEntry
from services.central.core.objects.companions import CompanionSeen
from services.central.core.rollout.config_documents import TargetSeen, cnc_status
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import CNCS, ApiKind
from shared.ports import Clock, Objects

log = structlog.get_logger()


class ConfigObjects:
    """Writes through objects that only the leader may write."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._pointing = EachNode(clock, "point CustomNodeConfig")

    @property
    def failures(self) -> Mapping[str, str]:
        """Why a node's CNC could not be written, by node."""
        return self._pointing.failures

    @property
    def due_in_s(self) -> float | None:
        """Seconds until the next try of one that failed; None while none has."""
        return self._pointing.due_in_s

    async def delete_expired(self, kind: ApiKind, seen: TargetSeen) -> None:
        """Delete a temporary config object whose time has passed.

        Raises:
            SubletError: the API server is away or refuses, or another one leads.
        """
        # With its UID, because the object may have been recreated under the same name since it was read.
        await self._objects.delete(kind, seen.target.name, seen.target.namespace, uid=seen.uid)
        log.info("config.expired", kind=kind.kind, object=seen.target.key)

    async def point(self, wanted: Mapping[str, Sequence[ConfigEntry]], there: Mapping[str, CompanionSeen]) -> None:
        """Make each node's CNC point to its entries, where it does not.

        Raises:
            SubletError: as `delete_expired`, of several nodes in a row.
        """

        async def one(name: str) -> None:
            cnc, entries = there.get(name), wanted[name]
            if cnc is not None and set(cnc.entries) != set(entries):
                document = {"metadata": {"name": name}, "status": cnc_status(entries)}
                await self._objects.patch(CNCS, document, status=True)

        self._pointing.retain(wanted)
        await self._pointing.each(sorted(wanted), one)

    async def write_status(self, kind: ApiKind, key: tuple[str, str], status: Mapping[str, Any]) -> None:
        """Write an object's status; `key` is its namespace and name.

        Raises:
            SubletError: as `delete_expired`.
        """
        namespace, name = key
        await self._objects.patch(
            kind, {"metadata": {"name": name, "namespace": namespace}, "status": status}, status=True
        )
