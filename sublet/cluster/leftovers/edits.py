"""Leftovers on objects of others, kind by kind: each edit is the merge patch that removes them, or None.

Every edit is computed from the current document, at its version, so concurrent writes are noticed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.clock_bounds.autoscaler import AUTOSCALERS, autoscaler_of, change_to_plain
from services.central.core.overcommit.node_documents import FIELDS, KEYS, overcommit_node, quantity_text
from services.central.core.profiles.capacity_gate import GATE
from services.central.core.scheduling.cluster.node_documents import REFUSES
from services.central.core.vertical.stock_vpa import APPLIED_SAID, STOCK_VPAS
from shared.adapters.kube.client import Kube, KubeError
from shared.core.api_kind import NODES, PODS, ApiKind
from shared.errors import Refused, Unavailable

MANAGER = "sublet-uninstall"
NOT_FOUND, CONFLICT = 404, 409
TRIES = 5
"""Of one object that others write at the same time, as kubelet does its Node."""
LISTED = 5
"""Objects that are named where some cannot be written."""

Document = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Edit:
    """What makes objects of a kind as they were."""

    kind: ApiKind
    change: Callable[[Document], Document | None]
    says: str
    status: bool = False
    query: tuple[tuple[str, str], ...] = ()
    """Which of them, as the API server selects."""


def _without_gate(pod: Document) -> Document | None:
    gates = pod["spec"].get("schedulingGates") or []
    others = [gate for gate in gates if gate.get("name") != GATE]
    return None if others == gates else {"spec": {"schedulingGates": others or None}}


def without_annotations(document: Document, names: frozenset[str]) -> Document | None:
    """What takes these from an object; None where it has none of them."""
    there = (document["metadata"].get("annotations") or {}).keys() & names
    return {"metadata": {"annotations": dict.fromkeys(sorted(there))}} if there else None


def _kubelets_figures(node: Document) -> Document | None:
    seen = overcommit_node(node)
    figures = {name: own for name, own in seen.said.originals.items() if seen.status.get(name) != own}
    if not figures:
        return None
    amounts = {field: {name: quantity_text(name, getattr(own, field)) for name, own in figures.items()}
               for field in FIELDS}  # fmt: skip
    return {"status": amounts}


def _plain_bounds(autoscaler: Document) -> Document | None:
    try:
        seen = autoscaler_of(autoscaler)
    except Refused:
        return None  # nothing that we have written makes it so
    change = None if seen is None else change_to_plain(seen)
    return None if seen is None or change is None else change.document(seen, "")


GATED_PODS = Edit(PODS, _without_gate, "let go to the scheduler", query=(("fieldSelector", "spec.nodeName="),))
REFUSALS = Edit(NODES, lambda node: without_annotations(node, frozenset({REFUSES})), f"{REFUSES} removed")
OVERCOMMIT_FIGURES = Edit(NODES, _kubelets_figures, "kubelet's own capacity written", status=True)
OVERCOMMIT_MARKS = Edit(NODES, lambda node: without_annotations(node, KEYS), "marks of over-commitment removed")
AUTOSCALER_BOUNDS = Edit(AUTOSCALERS, _plain_bounds, "its own bounds written")
APPLIED_WORDS = Edit(STOCK_VPAS, lambda vpa: without_annotations(vpa, frozenset({APPLIED_SAID})), "words removed")


async def take_away(kube: Kube, edit: Edit, say: Say) -> None:
    """Make every object of a kind as it was; one that fails holds up no other.

    Raises:
        KubeError: they cannot be listed.
        Unavailable: some could not be written, or nobody answers; what is done stays done.
    """
    failed: dict[str, str] = {}
    for document in await all_of(kube, edit.kind, **dict(edit.query)):
        name = name_of(document)
        try:
            if await _edited(kube, edit, document):
                say(f"{edit.kind.plural}/{name}: {edit.says}")
        except KubeError as error:
            failed[name] = str(error)
    if failed:
        listed = "; ".join(f"{name}: {why}" for name, why in sorted(failed.items())[:LISTED])
        raise Unavailable(f"{len(failed)} {edit.kind.plural} could not be written: {listed}", reason="not_written")


async def all_of(kube: Kube, kind: ApiKind, **query: object) -> list[Document]:
    """All objects of a kind; none where the cluster does not have it.

    Raises:
        KubeError: the API server refuses.
    """
    try:
        return list((await kube.list(kind.collection(), **query))["items"])
    except KubeError as error:
        if error.status == NOT_FOUND:
            return []
        raise


def name_of(document: Mapping[str, Any]) -> str:
    """Namespace and name, as people write them."""
    meta = document["metadata"]
    return "/".join(part for part in (meta.get("namespace", ""), meta["name"]) if part)


async def _edited(kube: Kube, edit: Edit, document: Document) -> bool:
    """Whether there was something to take away."""
    for left in reversed(range(TRIES)):
        change = edit.change(document)
        if change is None:
            return False
        meta = document["metadata"]
        path = edit.kind.path(meta["name"], meta.get("namespace", ""))
        body = {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
        try:
            await kube.merge(f"{path}/status" if edit.status else path, body, manager=MANAGER)
        except KubeError as error:
            if error.status == NOT_FOUND:
                return False
            if error.status != CONFLICT or not left:
                raise
        else:
            return True
        try:
            document = await kube.get(path)
        except KubeError as error:
            if error.status == NOT_FOUND:
                return False
            raise
    return False
