"""`insufficient` names the reclaimed resources that a node lacks for a pod (docs/facts/scheduling.md#fit)."""

from services.central.core.scheduling.amounts import Amounts
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, QosClass

RECLAIMED = (RECLAIMED_MEMORY, RECLAIMED_CPU)
"""The two resources, ascending by name."""
NO_REPORT = "no_report"


def reclaimed_request(qos: QosClass, effective: Amounts) -> dict[str, int]:
    """Return what a pod takes of a node's offer; only reclaimed pods take any."""
    mine = effective if qos == "reclaimed_cores" else {}
    return {name: mine.get(name, 0) for name in RECLAIMED}


def insufficient(request: Amounts, allocatable: Amounts | None, requested: Amounts) -> list[str]:
    """Return the resources of which too little is left, ascending; empty: the pod fits. `allocatable` None: never
    reported.

    An offer may fall below what was sold already: nothing is left then, and the node accepts no pod with a request.
    """
    if not any(request.values()):
        return []
    if allocatable is None:
        return [NO_REPORT]
    return [name for name in RECLAIMED if request[name] > allocatable.get(name, 0) - requested.get(name, 0)]
