"""Writes CNR conditions: what each CNR says about its node's agent, on change, a bounded number per pass."""

from collections.abc import Mapping

from services.central.core.lost_nodes.agent_loss import AgentState
from services.central.core.lost_nodes.cnr_conditions import CnrCondition, conditions_of, with_changes
from services.central.core.lost_nodes.verdict import NodeVerdict
from services.central.core.objects.nodes import utc
from services.central.core.view.cluster_view import ClusterView
from services.central.leadership.each_node import EachNode
from shared.core.api_kind import CNRS
from shared.ports import Clock, Objects

MANAGER = "sublet-central"
WRITES_AT_ONCE = 100
"""CNRs that are written in one pass: a new leader of many nodes has more urgent things to do."""


_Known = tuple[NodeVerdict, AgentState | None, bool, tuple[CnrCondition, ...]]


class CnrConditions:
    """Writes through objects that only the leader may write."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects, self._clock = objects, clock
        self._writing = EachNode(clock, "tell CustomNodeResource")
        self._compared: dict[str, _Known] = {}
        """By node what was last compared: the same evidence on a CNR that says the same asks for nothing new."""
        self._seen: tuple[object, object] | None = None
        """The CNRs and agents' pods of the last whole comparison; while they are the same ones few can have changed."""
        self._left: set[str] = set()
        """Nodes to look at again: those of which the bus said something else the last time, or no turn came."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Why a node's CNR could not be written, by node."""
        return self._writing.failures

    def forget(self) -> None:
        """Compare all of them again, as after another one has led."""
        self._compared.clear()
        self._seen = None

    async def write_changed(self, view: ClusterView) -> None:
        """Bring the CNRs to the verdicts, ascending by name.

        Raises:
            Unavailable: the API server is away, or another one leads.
        """
        names = self._changed(view)
        written, left = 0, {name for name in (*view.others, *view.assessment.others) if name in view.judged}

        async def one(name: str) -> None:
            nonlocal written
            if written < WRITES_AT_ONCE:
                written += await self.write_one(view, name)
            else:
                left.add(name)

        # Until the pass has come to its end: one that is broken off leaves nothing that could be relied on.
        self._seen = None
        self._writing.retain(view.judged)
        await self._writing.each(names, one)
        self._left = left | self._writing.failures.keys()
        self._seen = view.cnrs, view.pods

    def _changed(self, view: ClusterView) -> list[str]:
        """The nodes on which something may have changed since the last pass, ascending by name."""
        if self._seen is not None and self._seen[0] is view.cnrs and self._seen[1] is view.pods:
            some = self._left.union(view.others, view.assessment.others)
            return sorted(some & view.judged.keys())
        for gone in self._compared.keys() - view.judged.keys():
            del self._compared[gone]
        return [name for name in view.judged if self._compared.get(name) != self._known(view, name)]

    @staticmethod
    def _known(view: ClusterView, name: str) -> _Known | None:
        cnr = view.cnrs.get(name)
        if cnr is None:
            return None
        return view.judged[name].verdict, view.pods.get(name), view.well(name), cnr.conditions

    async def write_one(self, view: ClusterView, name: str) -> bool:
        """One CNR; whether something had to be written.

        Raises:
            SubletError: it could not be written, or another one leads; it is compared again then.
        """
        known = self._known(view, name)
        if known is None or self._compared.get(name) == known:
            return False
        cnr, wanted = view.cnrs[name], conditions_of(view.judged[name], view.pods.get(name), well=view.well(name))
        rows = with_changes(cnr.conditions, wanted, utc(self._clock.wall()))
        if rows:
            document = {"metadata": {"name": name}, "status": {"conditions": rows}}
            await self._objects.apply(CNRS, document, manager=MANAGER, status=True)
        self._compared[name] = known
        return bool(rows)
