"""Decisions about a pod that looked for a node: which nodes exclude it and why, and the scores of the others."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.central.core.scheduling.cluster.judge import JudgedNode
from services.central.core.scheduling.cluster.pod_asks import PodSeen
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "scheduling"
MOST_REFUSING, MOST_SUITING = 40, 20
"""Nodes that are named: thousands would fit no message."""


@dataclass(frozen=True, slots=True)
class SoughtPlace:
    """A pod, what each node that was asked about is for it, and the scores of those that take it; None: not asked."""

    pod: PodSeen
    judged: Mapping[str, JudgedNode]
    scores: Mapping[str, int] | None = None

    @property
    def fits(self) -> int:
        """Nodes that take it."""
        return sum(one.standing.fits for one in self.judged.values())

    def decided(self) -> Decided:
        """In words, the best nodes first."""
        refusing = [(node, one) for node, one in sorted(self.judged.items()) if not one.standing.fits]
        best = sorted((self.scores or {}).items(), key=lambda row: (-row[1], row[0]))[:MOST_SUITING]
        message = f"{self.fits} of {len(self.judged)} nodes take it"
        if best:
            message += f"; {best[0][0]} suits best ({best[0][1]} of 100), the scheduler adds its own scores"
        if refusing:
            message += f"; {refusing[0][0]}: {refusing[0][1].standing.reason}"
        about = DecidedObject(kind="pod", namespace=self.pod.namespace, name=self.pod.name, uid=self.pod.uid)
        why = [Reason(rule=one.rule, numbers={"node": node, **one.numbers}) for node, one in refusing[:MOST_REFUSING]]
        why += [Reason(rule="suits", numbers={"node": node, "score": score}) for node, score in best]
        return Decided(
            area=AREA, about=about, verdict="let_onto" if self.fits else "refused", message=message, why=tuple(why)
        )
