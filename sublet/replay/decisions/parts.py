"""The parts of central that decide, over a recording instead of a cluster: wired as central wires them.

Nothing here is asked of anybody, and what the parts write goes nowhere: what became of it is in later frames. So they
decide as central did, whatever was done with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS, kept_usage
from services.central.adapters.tide.objects import tide_ports
from services.central.clock_bounds.controller import ClockBoundsController
from services.central.core.clock_bounds.autoscaler import AUTOSCALERS
from services.central.core.profiles.capacity_gate import GATE, gates_of
from services.central.core.recommendation.objects.resource_recommend import (
    RESOURCE_RECOMMENDS,
    RecommendSeen,
    recommend_of,
)
from services.central.core.recommendation.objects.workloads import DEPLOYMENTS, deployment_of, pod_of_workload
from services.central.core.recommendation.resizing import Resize
from services.central.core.service_profiles.descriptor import DESCRIPTORS
from services.central.core.vertical.stock_vpa import STOCK_VPAS
from services.central.core.vertical.vpa_object import KATALYST_VPAS
from services.central.overcommit.controller import OvercommitController
from services.central.overcommit.view import OvercommitView
from services.central.ports.recommendation import KeptUsage, ResizeOutcome
from services.central.recommendation.controller import RecommendationController, RecommendMirrors, RecommendPorts
from services.central.service_profiles.controller import ServiceProfileController
from services.central.settings import NAME, KubernetesSettings
from services.central.tide.controller import TideController
from services.central.vertical.controller import VerticalController, vertical_mirrors
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.pod import Pod
from shared.core.api_kind import PODS
from shared.core.node_mode import NodeSwitch
from shared.errors import Refused
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Clock, Subscription
from shared.wire import Wire
from sublet.replay.decisions.frames import RecordedObject
from sublet.replay.decisions.objects import Document, RecordedObjects

GATES = "gate"
"""Its decisions are of the area `scheduling`, beside the extender's answers."""
_WRITERS = {
    AUTOSCALERS.kind: "clock_bounds",
    DESCRIPTORS.kind: "service_profiles",
    KATALYST_VPAS.kind: "vertical",
    STOCK_VPAS.kind: "vertical",
}
"""By kind the area that says what it decided once it has written that into the object itself."""

Key = tuple[str, DecidedObject, str]
"""Area and object, without its UID: the name is what people ask about; and which of several facts of it."""
_FACTS = {"poor": "standing", "well": "standing", "baseline": "baseline"}
"""Of a service profile two things are said, neither of which takes the other back."""


def key_of(decided: Decided) -> Key:
    """What a decision is about."""
    return decided.area, decided.about.model_copy(update={"uid": ""}), _FACTS.get(decided.verdict, "")


@dataclass(slots=True)
class NewestDecisions:
    """A `DecisionLog` that keeps the newest of each object."""

    of: dict[Key, Decided] = field(default_factory=dict)

    def say(self, decided: Decided) -> None:
        """See the port."""
        self.of[key_of(decided)] = decided

    def forget(self, kind: str, document: Document) -> None:
        """An object is gone: what was decided about it is nobody's."""
        meta = document["metadata"]
        gone = (kind.lower(), meta.get("namespace"), meta.get("name"))
        for key in [key for key in self.of if (key[1].kind, key[1].namespace, key[1].name) == gone]:
            del self.of[key]


@dataclass(frozen=True, slots=True)
class RecordedWorld:
    """What all parts see."""

    objects: RecordedObjects
    bus: MemoryBus
    clock: Clock
    decisions: NewestDecisions
    settings: KubernetesSettings


class _NoEvictions:
    """Nobody is evicted anew."""

    async def evict(self, node: str, pod: Pod, objection: Callable[[Pod], str]) -> None:
        del node, pod, objection

    async def report_gone(self) -> None:
        return

    def state(self) -> list[dict[str, str]]:
        return []


class _RecordedUsages:
    """Begins with the checkpoints of the recording; keeps, writes and resizes nothing."""

    def __init__(self, objects: RecordedObjects) -> None:
        self._objects = objects

    async def kept_usages(self) -> Sequence[KeptUsage]:
        found = []
        for document in await self._objects.list(USAGE_CHECKPOINTS):
            try:
                found.append(kept_usage(document))
            except Refused:
                continue  # of that workload history begins with the recording
        return found

    async def write_status(self, seen: RecommendSeen, status: Mapping[str, object]) -> None:
        del seen, status

    async def keep_usage(self, seen: RecommendSeen, usage: str) -> None:
        del seen, usage

    async def resize(self, resize: Resize) -> ResizeOutcome:
        del resize
        return "gone"


class _HearingProfiles:
    """Passes of service profiles, which hear nodes from the first one on."""

    def __init__(self, controller: ServiceProfileController) -> None:
        self._controller = controller
        self._heard: Subscription | None = None

    async def reconcile(self) -> None:
        if self._heard is None:
            self._heard = await self._controller.listen()
        await self._controller.reconcile()


def controllers(world: RecordedWorld) -> dict[str, Callable[[], Awaitable[None]]]:
    """One pass of each controller, by its area."""
    switch = NodeSwitch("enforce")
    objects, settings, changed = world.objects, world.settings, asyncio.Event()
    mirrors = RecommendMirrors(
        recommends=objects.mirror(RESOURCE_RECOMMENDS, recommend_of, changed.set),
        deployments=objects.mirror(DEPLOYMENTS, deployment_of, changed.set),
        pods=objects.mirror(PODS, pod_of_workload, changed.set),
    )
    ports = RecommendPorts(mirrors, world.bus, _RecordedUsages(objects), world.decisions, switch)
    recommendation = RecommendationController(ports, world.clock, settings.recommendation, changed)
    overcommit = OvercommitController(OvercommitView(objects), objects, world.decisions, world.clock, settings)
    tide = TideController(
        tide_ports(objects, changed.set, _NoEvictions(), world.decisions), settings.tide, world.clock, switch, changed
    )
    wire = Wire(world.bus, world.clock, node="replay", service=NAME)
    profiles = _HearingProfiles(ServiceProfileController(objects, wire, world.clock, switch, world.decisions))
    seen = vertical_mirrors(objects, stock=True)
    return {
        "recommendation": recommendation.reconcile,
        "overcommit": overcommit.reconcile,
        "tide": tide.reconcile,
        "clock_bounds": ClockBoundsController(objects, world.clock, switch, world.decisions).reconcile,
        "service_profiles": profiles.reconcile,
        "vertical": VerticalController(objects, seen, world.clock, switch, world.decisions).reconcile,
    }


def decider_of(there: Mapping[str, Any] | None, seen: RecordedObject) -> str | None:
    """The part that has to decide by what was there before; None: nobody, or the first lists are not whole yet.

    It writes first and speaks then, so a recorder sees what it wrote before it hears of it.
    """
    if there is None:
        return None
    if seen.kind != PODS.kind or seen.document is None:
        return _WRITERS.get(seen.kind)
    with suppress(Refused):
        if GATE in gates_of(there) and GATE not in gates_of(seen.document):
            return GATES
    return "vertical" if _containers(there) != _containers(seen.document) else None


def _containers(pod: Mapping[str, Any]) -> object:
    return (pod.get("spec") or {}).get("containers")
