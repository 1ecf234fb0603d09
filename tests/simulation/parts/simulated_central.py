"""A central of the simulated world: the product's own, over all its lives."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from central_rig import NoText
from seeded_loop import Process
from simulated_api import Route, SimKube
from simulated_bus import Link, SimBus
from simulated_parts import NodeClock

from services.central.adapters.cnr_conditions import MANAGER
from services.central.adapters.streams import FactStreams
from services.central.app import CentralApp
from services.central.main import ClusterAccess, build_cluster
from services.central.ports.app import CentralPorts
from services.central.settings import CentralSettings
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.kube.objects import KubeObjects
from shared.app import App, Context, Runner
from shared.app import Plan as ServicePlan
from shared.settings import CommonSettings, section

if TYPE_CHECKING:
    from simulated_world import World

RULES = {
    "late_s": 8, "probe_max_age_s": 6, "api_max_age_s": 12, "taint_s": 16, "evict_s": 30, "sudden_window_s": 10,
    "sudden_pause_s": 30, "clean_s": 8,
}  # fmt: skip
RAW = {
    "central": {
        "rules": RULES,
        "probe_s": 2,
        "assess_s": 1.5,
        "kubernetes": {"node_lease_s": 15, "lease": {"lease_s": 7, "renew_s": 5, "retry_s": 1.5}},
    }
}


@dataclass
class Site:
    """One place for a central, over all its lives."""

    world: "World"
    name: str
    random: Random
    link: Link = field(default_factory=Link)
    route: Route = field(default_factory=Route)
    agent: Process | None = None
    skew_s: float = 0.0
    lives: int = 0
    identity: str = ""
    app: CentralApp | None = None
    bus: SimBus | None = None
    stop: asyncio.Event | None = None
    down: bool = False

    def start(self) -> None:
        """Begin a life."""
        process = self.agent = Process(self.name, skew_s=self.skew_s)
        self.lives += 1
        self.identity = f"{self.name}_{self.lives}"
        random = Random(self.random.random())
        self.bus = bus = SimBus(self.world.broker, process, self.link, random)
        bus.heard = lambda message: self.world.checks.central_heard(self, message)
        kube = SimKube(self.world.api, process, self.route, random)
        kube.asked = lambda request: self.world.checks.central_asks(self, request)
        clock = NodeClock(process, 0.0)
        self.world.checks.central_began(self)

        def build(context: Context) -> App:
            settings = section(CentralSettings, context.raw, "central")
            objects = KubeObjects(kube, clock, manager=MANAGER)
            access = ClusterAccess(objects, context.wire, KubeEvictor(kube), self.identity, kube.close)
            cluster = build_cluster(access, clock, settings.kubernetes, context.switch)
            self.app = CentralApp(context, CentralPorts(NoText(), FactStreams(bus, clock), cluster), settings)
            return self.app

        common = CommonSettings(node=self.name, substrate="kubernetes", state_dir=self.world.folder)
        raw = {"central": {**RAW["central"], "shards": self.world.plan.shards}}
        runner = Runner((ServicePlan("central", build),), bus, clock, common, raw)
        self.stop = stop = asyncio.Event()
        task = process.start(runner.run(stop), self.name)
        task.add_done_callback(lambda done: self.world.central_ended(self, process, done))

    def crash(self) -> None:
        """`kill -9`."""
        if self.agent is not None:
            self.agent.kill()

    def disconnect(self) -> Callable[[], None]:
        """Lose the connection, and notice it."""
        bus = self.bus
        if bus is None:
            return lambda: None
        bus.go_offline()
        return bus.go_online
