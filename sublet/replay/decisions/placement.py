"""Placements anew: a pod that looked for a node is held against the nodes that were named, by the extender's judge.

And the gate's passes, over the same view.
"""

from collections.abc import Iterable

from services.central.core.scheduling.cluster.judge import Now
from services.central.core.scheduling.cluster.node_documents import said_by_node
from services.central.core.scheduling.cluster.placements import SoughtPlace
from services.central.core.scheduling.cluster.pod_asks import assigned_pod, pod_asked
from services.central.core.scheduling.waiting_pods import WaitingPods
from services.central.extender import Extender
from shared.contracts.cluster.decision import Decided
from shared.contracts.cluster.offer import NodeOffer
from shared.core.api_kind import PODS
from shared.errors import Refused
from sublet.replay.decisions.parts import RecordedWorld

ANSWERS = ("let_onto", "refused")
"""What the extender says of a pod; other words are the gate's."""


class PlacementReplay:
    """The extender's view of the recording."""

    def __init__(self, world: RecordedWorld) -> None:
        self._world = world
        given = world.settings.extender
        # With a gate in any case: that some pods wait behind it says that there was one.
        settings = given if given.gate != "none" else given.model_copy(update={"gate": "hold"})
        self._extender = Extender(world.objects, world.clock, settings, world.decisions)
        self._gates = self._extender.gates(self._extender.waiting or WaitingPods(), world.objects)

    async def let_go(self) -> None:
        """One pass of the gate: who goes, and what the others wait for."""
        await self._gates.reconcile()

    def hear(self, offer: NodeOffer) -> None:
        """A node says what it offers."""
        clock = self._world.clock
        said = said_by_node(offer, clock.monotonic(), clock.wall().timestamp())
        self._extender.view.hear(offer.node, said)

    def decided(self, recorded: Decided) -> Decided:
        """The same pod, held against the same nodes; where none is named against all.

        Raises:
            Refused: the pod is not in the recording, or cannot be read.
        """
        about, clock, view = recorded.about, self._world.clock, self._extender.view
        document = next((one for uid, one in self._world.objects.of(PODS).items() if uid == about.uid), None)
        if document is None:
            raise Refused(f"{about} is not in the recording yet", reason="not_recorded")
        looking = self._extender.judge.looking(pod_asked(document))
        now = Now(clock.monotonic(), clock.wall().timestamp())
        self._extender.reservations.expire(now.monotonic_s)
        # Its place may be seen already, by a recorder that hears of objects before decisions.
        view.put_pod(about.uid, None)
        nodes = sorted(_named(recorded)) or sorted(view.nodes.things)
        judged = self._extender.judge.judged(looking, nodes, now)
        fits = [node for node, one in judged.items() if one.standing.fits]
        scores = self._extender.suits.scores(looking, fits, now) if len(fits) > 1 else None
        if (placed := assigned_pod(document)) is not None:
            view.put_pod(about.uid, placed)
        else:
            self._extender.reservations.reserve(about.uid, looking.pod.seen.ask, fits, now.monotonic_s)
        return SoughtPlace(looking.pod.seen, judged, scores).decided()


def _named(decided: Decided) -> Iterable[str]:
    return {str(one.numbers["node"]) for one in decided.why if "node" in one.numbers}
