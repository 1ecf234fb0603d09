"""Says what became of pods that looked for a node, once for a filter and the scores that follow it."""

from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from services.central.core.scheduling.cluster.judge import JudgedNode
from services.central.core.scheduling.cluster.placements import SoughtPlace
from services.central.core.scheduling.cluster.pod_asks import PodSeen
from services.central.ports.decisions import DecisionLog


class PlacementLog:
    """A scheduler works on one pod at a time: what was filtered last is what is scored next."""

    def __init__(self, decisions: DecisionLog) -> None:
        self._decisions = decisions
        self._filtered: SoughtPlace | None = None

    def filtered(self, pod: PodSeen, judged: Mapping[str, JudgedNode]) -> None:
        """A pod was held against nodes."""
        placement = SoughtPlace(pod, judged)
        # Scores of a single node are of no use.
        if placement.fits > 1:
            self._filtered = placement
        else:
            self._say(placement)

    def scored(self, pod: PodSeen, scores: Mapping[str, int]) -> None:
        """And the nodes that take it have these scores."""
        filtered, self._filtered = self._filtered, None
        if filtered is not None and filtered.pod.uid == pod.uid:
            self._say(replace(filtered, scores=scores))

    def _say(self, placement: SoughtPlace) -> None:
        try:
            self._decisions.say(placement.decided())
        except ValidationError:
            # No API server accepts this name: the sender is no scheduler, and no user will ask about that pod.
            return
