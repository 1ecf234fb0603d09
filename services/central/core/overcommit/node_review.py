"""Answers the API server about writes to a Node's status: always allowed, changed if necessary.

Facts: docs/facts/katalyst-overcommit.md#webhook.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from services.central.core.admission.allowed import AdmissionRequest
from services.central.core.overcommit.admit import Admitted, ByResource, NodeOvercommit, admitted
from services.central.core.overcommit.amounts import Amounts
from services.central.core.overcommit.node_documents import (
    FIELDS,
    OvercommitNode,
    figure_texts,
    overcommit_annotations,
    overcommit_node,
    quantity_text,
)

MAX_NODE_REVIEW_BYTES = 8 << 20
"""The API server takes objects of 3 MiB at most, and an update sends two."""

NodeReviewOutcome = Literal["changed", "unchanged", "not_overcommitted"]
Patch = list[dict[str, Any]]


def node_patch(request: AdmissionRequest) -> tuple[Patch, NodeReviewOutcome]:
    """Return the change to a status before it is stored; none for a node that is not over-committed."""
    document = request.fields.get("object")
    if (request.operation, request.text("subResource")) != ("UPDATE", "status") or not isinstance(document, dict):
        return [], "not_overcommitted"
    if not overcommit_annotations(document):
        return [], "not_overcommitted"
    node = overcommit_node(document)
    found = _admitted(node, request)
    patch = _patch(node, found)
    return patch, "changed" if patch else "unchanged"


def _admitted(node: OvercommitNode, request: AdmissionRequest) -> Admitted:
    old = request.fields.get("oldObject")
    before = overcommit_node(old).status if isinstance(old, dict) else {}
    if not _by_kubelet(request, node.name):
        # A writer that changes no figure says nothing about them: new annotations take effect when kubelet writes.
        return Admitted(node.status) if node.status == before else admitted(node.status, node.said, by_kubelet=False)
    own = _kubelets_own(node.status, before, node.said.originals)
    said: NodeOvercommit = node.said
    # Figures derived from others are no longer kubelet's: until they are derived again, only the ratio applies.
    known = {name: one for name, one in said.overcommitted.items() if own.get(name) == said.originals.get(name)}
    found = admitted(own, replace(said, overcommitted=known), by_kubelet=True)
    return Admitted({**node.status, **found.status}, found.originals)


def _by_kubelet(request: AdmissionRequest, node: str) -> bool:
    user = request.fields.get("userInfo")
    name = user.get("username") if isinstance(user, Mapping) else None
    return bool(node) and name == f"system:node:{node}"


def _kubelets_own(status: ByResource, before: ByResource, stored: ByResource) -> ByResource:
    """The figures that kubelet sent.

    It sends a patch of what it believes to have changed. A figure that is as it was at the API server was not in it:
    taken for kubelet's it would be the amplified one, and be amplified again.
    """
    return {
        name: Amounts(*(_own(field, sent, before.get(name), stored.get(name)) for field in FIELDS))
        for name, sent in status.items()
    }


def _own(field: str, sent: Amounts, before: Amounts | None, stored: Amounts | None) -> int:
    figure: int = getattr(sent, field)
    silent = before is not None and stored is not None and getattr(before, field) == figure
    return int(getattr(stored, field)) if silent else figure


def _patch(node: OvercommitNode, found: Admitted) -> Patch:
    """Replace amounts that differ; kubelet's spelling of the others stays."""
    texts = figure_texts("original", found.originals or {})
    patch: Patch = [
        {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": text}
        for key, text in texts.items()
        if node.annotations.get(key) != text
    ]
    for name, sent in node.status.items():
        for field in FIELDS:
            wanted = getattr(found.status[name], field)
            if wanted != getattr(sent, field):
                patch.append({"op": "replace", "path": f"/status/{field}/{name}", "value": quantity_text(name, wanted)})
    return patch
