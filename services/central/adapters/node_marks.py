"""The writer of a lost node's marks: its reclaimed resources are taken from sale, and its CNR gets a taint."""

from collections.abc import Mapping
from typing import Any

import structlog

from services.central.adapters.cnr_conditions import MANAGER
from services.central.core.lost_nodes.lost_node import CnrTaint, with_lost_taint
from services.central.core.lost_nodes.verdict import Judged
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import NodeSeen
from shared.cnr_taints import keep_cnr_taints
from shared.core.api_kind import NODES
from shared.ports import Objects

log = structlog.get_logger()


class NodeMarks:
    """Writes through objects that only the leader may write."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def withdraw(self, node: NodeSeen, judged: Judged) -> None:
        """Take from sale what a node offers.

        Raises:
            SubletError: the API server is away or refuses.
        """
        # 0 and not removed: a merge patch on the status keeps what kubelet and others report.
        nothing = dict.fromkeys(sorted(node.offered), "0")
        status = {"capacity": nothing, "allocatable": nothing}
        await self._objects.patch(NODES, {"metadata": {"name": node.name}, "status": status}, status=True)
        log.warning("node.withdrawn", node=node.name, verdict=judged.verdict, why=judged.why)

    async def taint(self, cnr: CompanionSeen, judged: Judged, *, lost: bool) -> None:
        """Set the taint of a lost node, or take it away; ours stays in the shape in which it is found.

        Raises:
            SubletError: as `withdraw`; a `Conflict` where somebody wrote the CNR meanwhile.
        """
        taints, changed = with_lost_taint(cnr.taints, lost=lost)
        if not changed:
            return
        rows = [_row(taint.model_dump(mode="json")) for taint in taints if taint.ours]
        await keep_cnr_taints(self._objects, cnr.name, rows, manager=MANAGER, mine=_mine)
        log.warning("node.tainted" if lost else "node.untainted", node=cnr.name, why=judged.why)


def _row(taint: dict[str, Any]) -> dict[str, Any]:
    """A taint as the CNR carries it."""
    level = taint.pop("qos_level", None)
    return taint if level is None else {**taint, "qosLevel": level}


def _mine(row: Mapping[str, Any]) -> bool:
    return CnrTaint(key=str(row.get("key")), effect=str(row.get("effect")), qos_level=row.get("qosLevel")).ours
