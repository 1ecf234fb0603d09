"""`python -m services.central.extender` runs the scheduler extender in a process of its own (docs/scheduling.md).

The extender needs the API server. With the bus it knows at once what a node offers; without the bus it uses the node's
objects.
"""

from collections.abc import Awaitable, Callable, Mapping

from services.central.adapters.https.late_decisions import LateDecisions
from services.central.adapters.https.server import HttpsServer
from services.central.adapters.https.serving_secret import ServingNames, ServingSecret
from services.central.adapters.scheduling.scheduler_server import SchedulerServer
from services.central.core.scheduling.cluster.judge import Judge
from services.central.core.scheduling.cluster.placement_view import PlacementView, ViewRules
from services.central.core.scheduling.cluster.reservations import Reservations
from services.central.core.scheduling.cluster.suits import SuitRules, Suits
from services.central.core.scheduling.free_room import free_room
from services.central.core.scheduling.load.expected_use import Aggregate
from services.central.core.scheduling.load.filter import LoadLimits
from services.central.core.scheduling.waiting_pods import WaitingPods
from services.central.https_main import HttpsParts, HttpsPlan, run_alone
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.ports.decisions import DecisionLog
from services.central.scheduling.answers import ExtenderAnswers, ExtenderRules
from services.central.scheduling.controller import NAME, ExtenderController, OfferListener
from services.central.scheduling.gates import GateController, GateView
from services.central.scheduling.mirrors import SchedulingMirrors
from services.central.scheduling.placement_log import PlacementLog
from services.central.scheduling.waker import SchedulerWaker
from services.central.serving.process import HttpsProcess
from services.central.serving.serving import Serving
from services.central.settings import NAME as CENTRAL
from services.central.settings import ExtenderSettings, LeaseSettings, LoadSettings
from shared.ports import Bus, Clock, Objects

MANAGER = "sublet-extender"


def build(parts: HttpsParts) -> HttpsProcess:
    """One of the replicas, by `kubernetes.extender`."""
    decisions = LateDecisions(parts.bus, service=CENTRAL)
    extender = Extender(parts.objects, parts.clock, parts.settings.kubernetes.extender, decisions)
    return extender.process(parts.identity, parts.bus.get, {"decisions": decisions.run})


class Extender:
    """Builds the parts that answer, before the bus is known."""

    def __init__(self, objects: Objects, clock: Clock, settings: ExtenderSettings, decisions: DecisionLog) -> None:
        self._objects, self._clock, self._settings, self._decisions = objects, clock, settings, decisions
        load, limits = settings.load, load_limits(settings.load)
        factors = tuple(sorted((str(name), percent) for name, percent in load.estimate_percent.items()))
        weights = {str(name): weight for name, weight in load.score_factor.items()}
        self.view = PlacementView(ViewRules(settings.said_max_age_s, factors, limits.aggregate))
        self.reservations = Reservations(settings.hold_s)
        self.waiting = None if settings.gate == "none" else WaitingPods()
        self.mirrors = SchedulingMirrors(
            objects, self.view, self.reservations, node_metrics=settings.node_metrics, waiting=self.waiting
        )
        self.judge = Judge(self.view, self.reservations, limits)
        self.suits = Suits(
            self.view, self.judge, SuitRules(weights, load.dominant_factor, load.expire_s, settings.strategies)
        )
        rules = ExtenderRules(self.judge, self.suits, self.reservations)
        self.answers = ExtenderAnswers(rules, self.mirrors, clock, PlacementLog(decisions))

    def process(
        self, identity: str, bus: Callable[[], Awaitable[Bus]], tasks: Mapping[str, Callable[[], Awaitable[None]]]
    ) -> HttpsProcess:
        """The process under the name of this life of it; every writer goes through the leader."""
        settings, clock = self._settings, self._clock
        lease = LeaseSettings(name=settings.service, namespace=settings.namespace)
        leader = Leader(self._objects, clock, identity, lease)
        writing = LeaderObjects(self._objects, leader)
        secret = ServingSecret(writing, clock, ServingNames(settings.secret, settings.namespace, settings.names))
        server = HttpsServer(self.answers.routes, host=settings.host, port=settings.port)
        serving = Serving(
            SchedulerServer(server, lambda: secret.authorities), secret, clock,
            missing=lambda: self.mirrors.failure, leading=lambda: leader.leading,
        )  # fmt: skip
        offers = OfferListener(self.view, clock, bus)
        controller = ExtenderController(self.view, self.mirrors, serving, clock, {"offers": offers.run, **tasks})
        waker = SchedulerWaker(self.judge, self.mirrors, writing, clock, settings.wake_s)
        leading: dict[str, Callable[[], Awaitable[None]]] = {"waker": waker.run}
        if self.waiting is not None:
            leading["gates"] = self.gates(self.waiting, writing).run
        return HttpsProcess(NAME, clock, leader, controller, leading)

    def gates(self, waiting: WaitingPods, writing: Objects) -> GateController:
        """Return the controller that opens the gate for waiting pods."""
        view = GateView(waiting, self._free, hold=self._settings.gate == "hold")
        return GateController(view, writing, self._clock, self._decisions)

    def _free(self) -> Mapping[str, int] | None:
        # A pod that was given a node and is not seen there would have its room given out once more.
        if self.mirrors.failure or not self.mirrors.follows_pods:
            return None
        now_s = self._clock.monotonic()
        return free_room(self.view.state(node, now_s) for node in self.view.nodes.things)


def load_limits(load: LoadSettings) -> LoadLimits:
    """Settings as the rule takes them."""
    aggregate = None if load.aggregate is None else Aggregate(load.aggregate, load.aggregate_window_s)
    percent = {str(name): value for name, value in load.percent.items()}
    return LoadLimits(
        thresholds=percent,
        prod_thresholds={str(name): value for name, value in load.prod_percent.items()},
        aggregated_thresholds={} if aggregate is None else percent,
        aggregate=aggregate,
        expiration_s=load.expire_s,
        schedule_when_expired=load.expired_fits,
    )


PLAN = HttpsPlan(NAME, MANAGER, build)

if __name__ == "__main__":
    run_alone(PLAN)
