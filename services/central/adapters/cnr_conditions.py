"""The writer of CNR conditions: what each CNR says of its node's agent, written on change, some in each pass."""

from collections.abc import Mapping

import structlog

from services.central.core.lost_nodes.agent_loss import AgentState
from services.central.core.lost_nodes.cnr_conditions import conditions_of, with_changes
from services.central.core.lost_nodes.verdict import NodeVerdict
from services.central.core.objects.nodes import utc
from services.central.core.view.cluster_view import ClusterView
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import CNRS
from shared.errors import Conflict, Refused
from shared.ports import Clock, Objects

log = structlog.get_logger()

MANAGER = "sublet-central"
WRITES_AT_ONCE = 100
"""CNRs that are written in one pass: a new leader of many nodes has more urgent things to do."""


_Known = tuple[NodeVerdict, AgentState | None, bool, str]


class CnrConditions:
    """Writes through objects that only the leader may write."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects, self._clock = objects, clock
        self._writing = EachNode(clock, "tell CustomNodeResource")
        self._compared: dict[str, _Known] = {}
        """By node what was last compared: the same evidence on the same version of the CNR asks for nothing new."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why a node's CNR could not be written, by node."""
        return self._writing.failures

    def forget(self) -> None:
        """Compare all of them again, as after another one has led."""
        self._compared.clear()

    async def write_changed(self, view: ClusterView) -> None:
        """Bring the CNRs to the verdicts, ascending by name.

        Raises:
            Unavailable: the API server is away, or another one leads.
        """
        for gone in self._compared.keys() - view.judged.keys():
            del self._compared[gone]
        written = 0

        async def one(name: str) -> None:
            nonlocal written
            written += written < WRITES_AT_ONCE and await self.write_one(view, name)

        self._writing.retain(view.judged)
        await self._writing.each(sorted(view.judged), one)

    async def write_one(self, view: ClusterView, name: str) -> bool:
        """One CNR; whether something had to be written. A refusal is logged, and left at that.

        Raises:
            Unavailable: there was no answer, or another one leads.
        """
        judged, cnr = view.judged[name], view.cnrs.get(name)
        if cnr is None:
            return False
        known = (judged.verdict, view.pods.get(name), view.well(name), cnr.version)
        if self._compared.get(name) == known:
            return False
        wanted = conditions_of(judged, view.pods.get(name), well=view.well(name))
        rows = with_changes(cnr.conditions, wanted, utc(self._clock.wall()))
        if rows:
            document = {"metadata": {"name": name}, "status": {"conditions": rows}}
            try:
                await self._objects.apply(CNRS, document, manager=MANAGER, status=True)
            # Only a report: the same evidence on the same CNR would be refused again, so it is not
            # repeated until one of them changes.
            except (Conflict, Refused) as error:
                log.warning("cnr.not_told", node=name, why=str(error))
        self._compared[name] = known
        return bool(rows)
