"""`insufficient` says which reclaimed resources a node lacks for a pod (docs/facts/scheduling.md#fit)."""

from services.central.core.scheduling.amounts import Amounts
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, QosClass

RECLAIMED = (RECLAIMED_MEMORY, RECLAIMED_CPU)
"""The two resources, ascending by name."""
NO_REPORT = "no_report"


def reclaimed_request(qos: QosClass, effective: Amounts) -> dict[str, int]:
    """What a pod takes of a node's offer; only reclaimed pods take any."""
    mine = effective if qos == "reclaimed_cores" else {}
    return {name: mine.get(name, 0) for name in RECLAIMED}


def insufficient(request: Amounts, allocatable: Amounts | None, requested: Amounts) -> list[str]:
    """The resources of which too little is left, ascending; none: the pod fits. `allocatable` None: never reported.

    An offer may fall below what was given out already: then nothing is left, and the node takes nobody that asks for
    anything.
    """
    if not any(request.values()):
        return []
    if allocatable is None:
        return [NO_REPORT]
    return [name for name in RECLAIMED if request[name] > allocatable.get(name, 0) - requested.get(name, 0)]
