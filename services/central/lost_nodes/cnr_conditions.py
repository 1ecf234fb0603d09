"""Keeps what each CNR says of its node's agent: written on change, some in each turn, by the leader alone."""

import structlog

from services.central.core.lost_nodes.agent_loss import AgentState
from services.central.core.lost_nodes.agent_standing import conditions_of, with_changes
from services.central.core.lost_nodes.verdict import NodeVerdict
from services.central.core.objects.look import Look
from services.central.core.objects.seen import utc
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import CNRS
from shared.errors import Conflict, Refused
from shared.ports import Clock, Objects

log = structlog.get_logger()

MANAGER = "sublet-central"
TOLD_AT_ONCE = 100
"""CNRs that are written in one turn: a new leader of many nodes has more urgent things to do."""


_Known = tuple[NodeVerdict, AgentState | None, bool, str]


class CnrConditions:
    """Writes through objects that only the leader may write."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects, self._clock = objects, clock
        self.telling = EachNode(clock, "tell CustomNodeResource")
        self._told: dict[str, _Known] = {}
        """By node what was last looked at: the same evidence on the same version of the CNR asks for nothing new."""

    def forget(self) -> None:
        """Look at all of them again, as after another one has led."""
        self._told.clear()

    async def tell(self, seen: Look) -> None:
        """Bring the CNRs to the verdicts, ascending by name.

        Raises:
            Unavailable: the API server is away, or another one leads.
        """
        for gone in self._told.keys() - seen.judged.keys():
            del self._told[gone]
        told = 0

        async def one(name: str) -> None:
            nonlocal told
            told += told < TOLD_AT_ONCE and await self.tell_of(seen, name)

        self.telling.keep(seen.judged)
        await self.telling.each(sorted(seen.judged), one)

    async def tell_of(self, seen: Look, name: str) -> bool:
        """One CNR; whether something had to be written. A refusal is logged, and left at that.

        Raises:
            Unavailable: there was no answer, or another one leads.
        """
        judged, cnr = seen.judged[name], seen.cnrs.get(name)
        if cnr is None:
            return False
        known = (judged.verdict, seen.pods.get(name), seen.well(name), cnr.version)
        if self._told.get(name) == known:
            return False
        wanted = conditions_of(judged, seen.pods.get(name), well=seen.well(name))
        rows = with_changes(cnr.conditions, wanted, utc(self._clock.wall()))
        if rows:
            document = {"metadata": {"name": name}, "status": {"conditions": rows}}
            try:
                await self._objects.apply(CNRS, document, manager=MANAGER, status=True)
            except (Conflict, Refused) as error:
                log.warning("cnr.not_told", node=name, why=str(error))
        self._told[name] = known
        return bool(rows)
