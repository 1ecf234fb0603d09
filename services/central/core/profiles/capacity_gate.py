"""The gate in front of the scheduler with which pods are created that ask for reclaimed resources.

A pod that no scheduler can place makes autoscalers add machines. One with a gate is not looked at, so that reclaimed
capacity is waited for and not bought (docs/facts/scheduling.md#gates).
"""

from collections.abc import Mapping
from typing import Any

from services.central.core.profiles.pod_claims import claims_of
from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    FIRST_BATCH_CPU,
    FIRST_BATCH_MEMORY,
    RECLAIMED_CPU,
    RECLAIMED_MEMORY,
    TUTORIAL_RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_MEMORY,
)
from shared.core.text.document import items, mapping

GATE = "sublet.io/wait-for-capacity"

_ACCOUNTS = {
    RECLAIMED_CPU: (RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, BATCH_CPU, FIRST_BATCH_CPU),
    RECLAIMED_MEMORY: (RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_MEMORY, BATCH_MEMORY, FIRST_BATCH_MEMORY),
}
"""Every name of a reclaimed resource takes of the same offer."""

Document = Mapping[str, Any]


def reclaimed_asked(pod: Document) -> dict[str, int]:
    """Return what a pod takes of the offer, in milli-cores and bytes, under any names.

    Raises:
        Refused: it has another shape than a Pod, or an amount is no quantity.
    """
    thousandths = claims_of(pod).requests
    return {
        account: sum(-(-thousandths.get(name, 0) // 1000) for name in names) for account, names in _ACCOUNTS.items()
    }


def gates_of(pod: Document) -> tuple[str, ...]:
    """Return the names of a pod's scheduling gates.

    Raises:
        Refused: it has another shape than a Pod.
    """
    rows = items(mapping(pod.get("spec"), "spec").get("schedulingGates"), "schedulingGates")
    return tuple(str(mapping(row, "schedulingGates").get("name")) for row in rows)


def with_gate(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod behind the gate, if it requests any of the offer and a scheduler will place it.

    A pod that has a node may have no gate, and a DaemonSet's pod can run on one node only, whatever others have free.

    Raises:
        Refused: it has another shape than a Pod, or an amount is no quantity.
    """
    spec, meta = mapping(pod.get("spec"), "spec"), mapping(pod.get("metadata"), "metadata")
    owners = [mapping(one, "ownerReferences") for one in items(meta.get("ownerReferences"), "ownerReferences")]
    of_daemonset = any(one.get("kind") == "DaemonSet" and one.get("controller") is True for one in owners)
    if spec.get("nodeName") or of_daemonset or GATE in gates_of(pod) or not any(reclaimed_asked(pod).values()):
        return pod
    gates = [*items(spec.get("schedulingGates"), "schedulingGates"), {"name": GATE}]
    return {**pod, "spec": {**spec, "schedulingGates": gates}}
