"""`KubeNode` writes this node's CNR with its status, and the extended resources of its Node.

The amounts on the Node are the reporter's, but central may withdraw them, and sets a mark in the CNR: while the mark
exists the Node shows none. Central sets the mark before it removes the amounts. Here the Node's version is read, the
mark is checked, and the amounts are written at that version, so an offer that crosses a withdrawal is refused (409).

Koordinator's batch and mid resources appear only while they are offered: an unknown amount is not an offer of 0.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from shared.adapters.kube.client import Kube, KubeError
from shared.contracts.kube.node_conditions import WITHDRAWN
from shared.contracts.kube.quantities import format_units, parse_units
from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    MID_CPU,
    MID_MEMORY,
    TUTORIAL_RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_MEMORY,
)
from shared.core.cpus.normalization import node_normalization_ratio
from shared.core.pods.extended_resources import KOORDINATOR_NAMES, OFFERED_NAMES, node_amounts, own_names
from shared.errors import Unavailable

CNRS = "/apis/node.katalyst.kubewharf.io/v1alpha1/customnoderesources"
MANAGER = "sublet-reporter"
OFFERED = (TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY)
NOT_FOUND, CONFLICT = 404, 409
_Revision = tuple[object, object]
_Latest = Callable[[], Mapping[str, object]]
"""Makes the node's object anew."""
TRIES = 5
"""Tries for one write. Others write a Node every few seconds at most."""


class KubeNode:
    """The NodeWriter of a cluster, with its own field manager; other owners' fields are left alone."""

    def __init__(self, kube: Kube, node: str, asked: Callable[[], Mapping[str, int]]) -> None:
        self._kube, self._node, self._asked = kube, node, asked
        """`asked` gives what this node's pods ask for, under the names that the pods use."""
        self._offered: dict[str, int] | None = None
        self._shown: dict[str, int] | None = None
        self._spec: tuple[object, _Revision | None] | None = None
        """The CNR's spec as last written, and the CNR's revision by that."""
        self._revision: _Revision | None = None
        """The CNR's revision when the mark was last looked for; None where there is no CNR."""
        self.withdrawn = False
        """Whether central's mark stood when it was last looked for."""
        self.seen: Mapping[str, Any] | None = None
        """The Node as it was when its amounts were last written; None before."""
        self.cpu_changed: Callable[[], None] = lambda: None
        """Called when the Node's CPU normalization ratio changes, and after it was first read."""

    async def write(
        self, document: Mapping[str, object], latest: Callable[[], Mapping[str, object]] | None = None
    ) -> None:
        """Show the offer on the Node, and replace the CNR's spec and status.

        A fall reaches the Node before the CNR, because the scheduler uses the Node. Each request tells what `latest`
        says when it is sent: the requests before it may have taken long.

        Raises:
            Unavailable: the API server cannot be reached, or refuses; says why. What was written stays.
        """
        try:
            await self._write(latest or (lambda: document))
        except KubeError as error:
            raise Unavailable(f"node object {self._node}: {error}", reason=error.reason) from error

    async def _write(self, latest: _Latest) -> None:
        await self._show(again=True, latest=latest)
        await self._write_spec(latest())
        if _offered(latest()) != self._offered:  # meanwhile, and the Node comes first
            await self._show(again=False, latest=latest)
        whole = latest()
        status = {**_head(whole), "status": whole.get("status", {})}
        await self._kube.apply(f"{CNRS}/{self._node}/status", status, manager=MANAGER)
        # Another offer once more, at which the CNR could not wait any longer.
        if _offered(whole) != self._offered:
            self._offered = _offered(whole)
            await self._show(again=False)

    async def _write_spec(self, whole: Mapping[str, object]) -> None:
        # Spec and status are two resources: an apply to the one leaves out the other.
        spec = whole.get("spec", {})
        if self._spec != (spec, self._revision) or self._revision is None:
            head = _head(whole)
            written = await self._kube.apply(f"{CNRS}/{self._node}", head | {"spec": spec}, manager=MANAGER)
            self._spec = spec, _revision(written)

    async def show(self, *, again: bool = False) -> bool:
        """Bring the Node's amounts to what its pods request now; `again` looks even if they should be there
        already.

        Returns False if nothing was asked, because they should be there.

        Raises:
            Unavailable: as `write`.
        """
        try:
            return await self._show(again=again)
        except KubeError as error:
            raise Unavailable(f"node {self._node}: {error}", reason=error.reason) from error

    async def _show(self, *, again: bool, latest: _Latest | None = None) -> bool:
        if latest is not None:
            self._offered = _offered(latest())
        if self._offered is None or not (again or self.withdrawn or self._amounts() != self._shown):
            return False
        # Anew from the reading: what made the version stale may be the mark.
        for left in reversed(range(TRIES)):
            try:
                await self._write_amounts(latest)
                break
            except KubeError as error:
                if error.status != CONFLICT or not left:
                    raise
        return True

    async def _write_amounts(self, latest: _Latest | None) -> None:
        # In this order: the Node's version, then the mark. If the mark is set after this line, central writes the Node
        # afterwards, and the version here is stale by then.
        node = await self._kube.get(f"/api/v1/nodes/{self._node}")
        before, self.seen = self.seen, node
        if before is None or node_normalization_ratio(before) != node_normalization_ratio(node):
            self.cpu_changed()
        self.withdrawn = await self._marked()
        if latest is not None:
            self._offered = _offered(latest())
        amounts = self._amounts()
        # Written by this process, or by one before it with other settings.
        gone = ((own_names(node) | (self._shown or {}).keys()) & KOORDINATOR_NAMES) - amounts.keys()
        # null takes a key out in a merge patch.
        shown = {name: format_units(amounts[name]) for name in sorted(amounts)} | dict.fromkeys(sorted(gone))
        # Most reports tell of something else, and the Node shows the amounts already.
        if not _shows(node, shown):
            version = node["metadata"]["resourceVersion"]
            await self._kube.merge(
                f"/api/v1/nodes/{self._node}/status",
                {"metadata": {"resourceVersion": version}, "status": {"capacity": shown, "allocatable": shown}},
                manager=MANAGER,
            )
        self._shown = amounts

    def _amounts(self) -> dict[str, int]:
        amounts = node_amounts(self._offered or {}, self._asked())
        return dict.fromkeys(amounts, 0) if self.withdrawn else amounts

    async def _marked(self) -> bool:
        """Whether central has taken this node's reclaimed resources from sale."""
        try:
            cnr = await self._kube.get(f"{CNRS}/{self._node}")
        except KubeError as error:
            if error.status == NOT_FOUND:
                self._revision = None
                return False
            raise
        self._revision = _revision(cnr)
        rows = (cnr.get("status") or {}).get("conditions") or ()
        return any(row.get("type") == WITHDRAWN and row.get("status") == "True" for row in rows)


def _head(document: Mapping[str, object]) -> dict[str, object]:
    return {key: document[key] for key in ("apiVersion", "kind", "metadata")}


def _revision(cnr: Mapping[str, Any]) -> _Revision:
    """The object and the count of its spec's changes: equal means that its spec is still the same."""
    meta = cnr.get("metadata") or {}
    return meta.get("uid"), meta.get("generation")


def _shows(node: Mapping[str, Any], amounts: Mapping[str, str | None]) -> bool:
    """Whether a Node shows these amounts, and none where there is to be none."""
    status = node.get("status") or {}
    return all(
        (status.get(part) or {}).get(name) == amount
        for part in ("capacity", "allocatable")
        for name, amount in amounts.items()
    )


async def remove_offer(kube: Kube, node: str, names: Collection[str] = tuple(OFFERED_NAMES)) -> None:
    """Remove the reclaimed amounts from a Node, as at an uninstall.

    Raises:
        KubeError, Unavailable: the API server refuses, or cannot be reached.
    """
    # null takes a key out in a merge patch.
    nothing = dict.fromkeys(sorted(names))
    change = {"status": {"capacity": nothing, "allocatable": nothing}}
    await kube.merge(f"/api/v1/nodes/{node}/status", change, manager=MANAGER)


def _offered(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the offer in force from the CNR; empty if the CNR leaves it out."""
    status = document.get("status") or {}
    katalyst = status.get("resourceAllocatable") or {}
    koordinator = (status.get("resources") or {}).get("allocatable") or {}
    amounts = {name: katalyst[name] for name in OFFERED if name in katalyst}
    amounts |= {
        name: koordinator[name] for name in (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY) if name in koordinator
    }
    return {name: parse_units(amount) for name, amount in amounts.items()}
