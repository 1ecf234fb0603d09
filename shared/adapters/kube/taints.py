"""`KubeTaints` replaces Sublet's taints in a Node's `spec.taints` and leaves all others unchanged.

The list has no merge keys, so it is written as a whole, at the version at which it was read. If another writer is
faster, the API server refuses (409), and the list is read again. The Node's taints keep pods away; the CNR, which the
quick start shows, lists them as well.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from shared.adapters.kube.client import Kube, KubeError
from shared.adapters.kube.evictor import MANAGER
from shared.cnr_taints import keep_cnr_taints
from shared.contracts.kube.taint import TAINT_PREFIX, Taint, in_order
from shared.errors import Refused, Unavailable
from shared.ports import Objects

CONFLICT = 409
TRIES = 5
"""Tries for one write. A Node is written every few seconds at most; after five conflicts the next round tries again."""


class KubeTaints:
    """The NodeTaints of a cluster. A taint's causes have no place in the API and are not kept."""

    def __init__(self, kube: Kube, node: str, objects: Objects | None = None) -> None:
        """`objects`: access to the CNR; None: only the Node is written."""
        self._kube, self._node, self._path, self._objects = kube, node, f"/api/v1/nodes/{node}", objects
        self._shown: tuple[Taint, ...] | None = None

    async def read(self) -> tuple[Taint, ...]:
        """Ours.

        Raises:
            Unavailable: the API server refuses or cannot be reached, or the Node holds what is no taint.
        """
        _, entries = await self._read()
        return in_order(taint for _, taint in entries if taint.ours)

    async def write(self, taints: Sequence[Taint]) -> None:
        """Replace ours, where they differ.

        Raises:
            Unavailable: as `read`, or others write the Node all the time.
            Refused: a key that is not under our prefix.
        """
        for taint in taints:
            if not taint.ours:
                raise Refused(f"taint {taint.key}: want a key under {TAINT_PREFIX}; not written", reason="foreign")
        wanted = [taint.document(causes=False) for taint in in_order(taints)]
        for _ in range(TRIES):
            if await self._replace(wanted):
                return
        raise Unavailable(f"{self._path}: written by others {TRIES} times in a row; the taints stay", reason="conflict")

    async def show(self, taints: Sequence[Taint]) -> None:
        """As our own entries of the CNR; while there are none to show, it is not looked at again.

        Raises:
            SubletError: the API server refuses or cannot be reached, or somebody wrote the CNR meanwhile.
        """
        shown = in_order(taints)
        if self._objects is None or (not shown and self._shown == shown):
            return
        rows = [taint.document(causes=False) for taint in shown]
        # Forgotten before it is written: where the answer gets lost, nobody knows what the CNR shows.
        self._shown = None
        await keep_cnr_taints(self._objects, self._node, rows, manager=MANAGER, mine=_mine)
        self._shown = shown

    async def _replace(self, wanted: Sequence[Mapping[str, Any]]) -> bool:
        """Return False if the Node was written by others meanwhile."""
        version, entries = await self._read()
        # Compared before it is written: a Node is watched by everybody, and each write wakes all of them.
        if [taint.document() for taint in in_order(taint for _, taint in entries if taint.ours)] == wanted:
            return True
        # As they stand in the document: a taint of others may have fields that the model does not know.
        listed = [*(entry for entry, taint in entries if not taint.ours), *wanted]
        # null takes the list out in a merge patch.
        change = {"metadata": {"resourceVersion": version}, "spec": {"taints": listed or None}}
        try:
            await self._kube.merge(self._path, change, manager=MANAGER)
        except KubeError as error:
            if error.status == CONFLICT:
                return False
            raise Unavailable(f"{error}; the taints stay", reason=error.reason) from error
        return True

    async def _read(self) -> tuple[str, list[tuple[Any, Taint]]]:
        """Return the Node's version, and each taint as it is there, and parsed."""
        try:
            node = await self._kube.get(self._path)
        except KubeError as error:
            raise Unavailable(str(error), reason=error.reason) from error
        entries = (node.get("spec") or {}).get("taints") or []
        try:
            return node["metadata"]["resourceVersion"], [(entry, Taint.model_validate(entry)) for entry in entries]
        except (KeyError, TypeError, ValidationError) as error:
            raise Unavailable(f"{self._path}: its taints cannot be read: {error}", reason="malformed") from error


def _mine(row: Mapping[str, Any]) -> bool:
    return str(row.get("key")).startswith(TAINT_PREFIX)
