"""The objects that `sublet get` prints: pods, the node's object, the node with its taints."""

from collections.abc import Sequence
from typing import Any

from shared.adapters.files.taints import TaintFile
from shared.adapters.local.runtime import Runtime
from shared.adapters.local.stored_pod import StoredPod
from shared.errors import Refused
from sublet.pods.offer import read_cnr
from sublet.pods.shown.pod_view import cnr_table, documents, pods_table
from sublet.terminal.formats import ObjectList
from sublet.views.taints import node_document, node_table


def pods_listed(pods: Sequence[StoredPod], *, single: bool) -> ObjectList:
    """Pods of this host; `single` where exactly one was asked for."""
    return ObjectList(
        tuple(f"pod/{stored.record.pod.name}" for stored in pods),
        lambda wide: pods_table(pods, wide=wide),
        lambda: documents(pods, single=single),
    )


def node_object_listed(runtime: Runtime, names: Sequence[str]) -> ObjectList:
    """The node's object (CNR).

    Raises:
        Refused: another node's was asked for.
        Unavailable: there is none.
    """
    document = read_cnr(runtime)
    name = str(_metadata(document).get("name", ""))
    _refuse_other(names, name, "cnr")
    return ObjectList((f"cnr/{name}",), lambda _wide: cnr_table(document), lambda: document)


def node_listed(runtime: Runtime, node: str, names: Sequence[str]) -> ObjectList:
    """The node with its taints.

    Raises:
        Refused: another node was asked for.
        Unavailable: the taints cannot be read.
    """
    _refuse_other(names, node, "node")
    taints = TaintFile(runtime.common.state_dir).standing()
    return ObjectList((f"node/{node}",), lambda _wide: node_table(node, taints), lambda: node_document(node, taints))


def _refuse_other(names: Sequence[str], own: str, kind: str) -> None:
    if other := next((name for name in names if name != own), None):
        raise Refused(
            f"{kind} {other!r} not found; this host is {own!r}; of a cluster: sublet get {kind} {other} --cluster",
            reason="not_found",
        )


def _metadata(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}
