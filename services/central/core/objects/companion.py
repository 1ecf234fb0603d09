"""The CNR and CNC of a Node: same name and labels, owned by it.

Facts: docs/facts/katalyst-cluster.md#companions-of-a-node.
"""

from collections.abc import Mapping
from typing import Any


def companion_metadata(name: str, uid: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of a Node's companion, whatever is there now: labels are the Node's alone.

    Owned by the Node as its controller, so that Kubernetes deletes it with the Node.
    """
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {"name": name, "labels": dict(sorted(labels.items())), "ownerReferences": [owner]}
