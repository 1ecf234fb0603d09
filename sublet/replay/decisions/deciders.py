"""`decider_of` says which part of central may have written a change, and says afterwards what it decided."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from services.central.core.clock_bounds.autoscaler import AUTOSCALERS
from services.central.core.profiles.capacity_gate import GATE, gates_of
from services.central.core.service_profiles.descriptor import DESCRIPTORS
from services.central.core.vertical.stock_vpa import STOCK_VPAS
from services.central.core.vertical.vpa_object import KATALYST_VPAS
from shared.core.api_kind import PODS
from shared.errors import Refused
from sublet.replay.decisions.frames import RecordedObject

GATES = "gate"
"""Its decisions are of the area `scheduling`, beside the extender's answers."""
_AREAS = {
    AUTOSCALERS.kind: "clock_bounds",
    DESCRIPTORS.kind: "service_profiles",
    KATALYST_VPAS.kind: "vertical",
    STOCK_VPAS.kind: "vertical",
}


def decider_of(there: Mapping[str, Any] | None, seen: RecordedObject) -> str | None:
    """The part that has to decide by what was there before; None: nobody, or the first lists are not whole yet.

    It writes first and speaks then, so a recorder sees what it wrote before it hears of it.
    """
    if there is None:
        return None
    if seen.kind != PODS.kind or seen.document is None:
        return _AREAS.get(seen.kind)
    with suppress(Refused):
        if GATE in gates_of(there) and GATE not in gates_of(seen.document):
            return GATES
    return "vertical" if _containers(there) != _containers(seen.document) else None


def _containers(pod: Mapping[str, Any]) -> object:
    return (pod.get("spec") or {}).get("containers")
