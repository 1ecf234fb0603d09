"""Which taints of a CNR keep a pod away: in either of their two shapes (docs/facts/katalyst-cluster.md#two-spellings).

Upstream writes these taints, and no scheduler of its reads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.central.core.lost_nodes.lost_node import LATER_QOS, TAINT_EFFECT, CnrTaint
from shared.contracts.pod import QosClass

KEEPS_AWAY = ("NoSchedule", "NoExecute", TAINT_EFFECT)


@dataclass(frozen=True, slots=True)
class Toleration:
    """One toleration of a pod; "" of key or effect means every one, as for Nodes' taints."""

    key: str = ""
    exists: bool = False
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: CnrTaint) -> bool:
        """Whether this taint does not keep the pod away."""
        # A toleration is of the API server's effects: the older effect of a CNR is its NoSchedule.
        effect = "NoSchedule" if taint.effect == TAINT_EFFECT else taint.effect
        if self.effect not in ("", effect):
            return False
        if not self.key:
            return self.exists
        return self.key == taint.key and (self.exists or self.value == (taint.value or ""))


def toleration_of(row: Mapping[str, Any]) -> Toleration:
    """A toleration of its document; what cannot be read tolerates nothing."""
    key, value, effect, operator = (row.get(name) for name in ("key", "value", "effect", "operator"))
    if any(given is not None and not isinstance(given, str) for given in (key, value, effect, operator)):
        return Toleration(key="unreadable", effect="unreadable")
    if operator not in (None, "", "Equal", "Exists"):
        # Of numbers and the like (Gt, Lt), which no CNR has.
        return Toleration(key=key or "unreadable", effect="unreadable")
    return Toleration(key or "", operator == "Exists", value or "", effect or "")


def keeping_away(taints: Sequence[CnrTaint], qos: QosClass, tolerations: Sequence[Toleration]) -> list[CnrTaint]:
    """The taints that a pod of this class does not tolerate, in their order."""
    return [taint for taint in taints if _is_for(taint, qos) and not any(one.tolerates(taint) for one in tolerations)]


def _is_for(taint: CnrTaint, qos: QosClass) -> bool:
    if taint.effect not in KEEPS_AWAY:
        return False
    if taint.effect == TAINT_EFFECT:
        return qos == LATER_QOS
    return taint.qos_level in (None, "", qos)
