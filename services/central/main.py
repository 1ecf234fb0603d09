"""Wiring of central: the configuration of all nodes comes from a file, and in a cluster from its objects as well."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.central.adapters.cluster_mirrors import mirror_cluster
from services.central.adapters.cnr_conditions import MANAGER, CnrConditions
from services.central.adapters.companions import Companions
from services.central.adapters.config_objects import ConfigObjects
from services.central.adapters.decisions import BusDecisions
from services.central.adapters.https.late_bus import LateBus
from services.central.adapters.node_entries import NodeEntries
from services.central.adapters.node_marks import NodeMarks
from services.central.adapters.pod_evictions import TIDE, AnnouncedEvictions
from services.central.adapters.reclaimed_pods import KubeReclaimedPods
from services.central.adapters.recommendation.recommend_objects import RecommendObjects
from services.central.adapters.slo_objects import SloObjects
from services.central.adapters.streams import FactStreams
from services.central.adapters.tide.objects import tide_ports
from services.central.adapters.watched_file import WatchedFile
from services.central.app import CentralApp
from services.central.clock_bounds.controller import ClockBoundsController
from services.central.cluster import ClusterControllers, LeaderControllers
from services.central.config.controller import ConfigController
from services.central.core.logins.issuer_key import login_seed
from services.central.core.objects.node_slos import node_slo_of
from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS, recommend_of
from services.central.core.recommendation.objects.workloads import DEPLOYMENTS, deployment_of, pod_of_workload
from services.central.core.view.evidence import LostEvidence
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.logins.controller import LoginController
from services.central.nodes.controller import NodeController
from services.central.nodes.observer import NodeObserver
from services.central.overcommit.controller import OvercommitController
from services.central.overcommit.view import OvercommitView
from services.central.pauses.controller import PauseController
from services.central.pauses.follower import PauseFollower
from services.central.pauses.pausable import PausableEvictions
from services.central.ports.app import CentralPorts
from services.central.ports.config import ConfigPorts
from services.central.ports.controllers import LeaderController
from services.central.ports.nodes import NodePorts
from services.central.recommendation.controller import RecommendationController, RecommendMirrors, RecommendPorts
from services.central.service_profiles.controller import ServiceProfileController
from services.central.settings import (
    NAME,
    CentralSettings,
    KubernetesSettings,
    LoginSettings,
    RecommendationSettings,
)
from services.central.slo.controller import NodeSloController, SloView
from services.central.slo.follower import SloFollower
from services.central.tide.controller import TideController
from services.central.vertical.controller import VerticalController, vertical_mirrors
from shared.adapters.ed25519 import SigningKey
from shared.adapters.nats.callout import Callout
from shared.app import App, Context, Plan
from shared.core.api_kind import CNCS, CNRS, NODE_SLOS, PODS
from shared.core.node_mode import NodeSwitch
from shared.ports import Clock, EvictionActuator, Objects
from shared.settings import section
from shared.wire import Wire

if TYPE_CHECKING:
    from shared.adapters.kube.client import Kube


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The ways to a cluster: its objects, its bus and its evictions, under the name of this life of the process."""

    objects: Objects
    wire: Wire
    evictor: EvictionActuator
    identity: str
    close: Callable[[], Awaitable[None]]


def build(context: Context) -> App:
    """Central over `config_file`, by default `<state_dir>/config.yaml`."""
    settings = section(CentralSettings, context.raw, NAME)
    return CentralApp(context, _ports(context, settings), settings)


def _ports(context: Context, settings: CentralSettings) -> CentralPorts:
    text = WatchedFile(settings.config_file or context.common.state_dir / "config.yaml")
    streams = FactStreams(context.wire.bus, context.clock)
    if context.common.substrate != "kubernetes":
        return CentralPorts(text, streams)
    from shared.adapters.kube.client import Kube

    kube = Kube(context.common.kubeconfig)
    access = _access(context, kube)
    cluster = build_cluster(access, context.clock, settings.kubernetes, context.switch)
    return CentralPorts(
        text,
        streams,
        cluster,
        _logins(context, settings.kubernetes.logins, kube),
        LateBus(context.common, context.clock, name=NAME),
    )


def _access(context: Context, kube: "Kube") -> ClusterAccess:
    from shared.adapters.kube.evictor import KubeEvictor
    from shared.adapters.kube.objects import KubeObjects

    objects = KubeObjects(kube, context.clock, manager=MANAGER)
    # Of this run, because a restarted pod of the same name must not take its former lease for its own.
    identity = f"{context.common.node}_{context.wire.boot_id}"
    return ClusterAccess(objects, context.wire, KubeEvictor(kube), identity, kube.close)


def build_cluster(
    access: ClusterAccess, clock: Clock, settings: KubernetesSettings, switch: NodeSwitch
) -> ClusterControllers:
    """Leader, mirrors and controllers over a cluster; every writer goes through the leader."""
    leader = Leader(access.objects, clock, access.identity, settings.lease)
    objects = LeaderObjects(access.objects, leader)
    changed, slo_changed = asyncio.Event(), asyncio.Event()

    def wake() -> None:
        changed.set()
        slo_changed.set()

    mirrors = mirror_cluster(objects, wake, settings)
    follower = None if mirrors.slo is None else SloFollower(mirrors.slo, settings.slo.path)
    observer = NodeObserver(mirrors, LostEvidence(settings.node_lease_s), leader, clock, switch)
    pauses = PauseFollower(objects, mirrors.nodes, clock, settings.lease.namespace)
    node_ports = NodePorts(
        marks=NodeMarks(objects),
        conditions=CnrConditions(objects, clock),
        pods=KubeReclaimedPods(objects, clock, settings.agent),
        evictions=AnnouncedEvictions(access.wire.bus, clock, leader, access.evictor),
        paused=pauses.why,
    )
    config_ports = ConfigPorts(
        companions={kind: Companions(objects, clock, kind) for kind in (CNRS, CNCS)},
        entries=NodeEntries(access.wire.bus, leader),
        objects=ConfigObjects(objects, clock),
        applied=observer.applied,
        slo=follower,
    )
    nodes = NodeController(observer, node_ports, leader, clock)
    configs = ConfigController(mirrors, config_ports, clock, settings, changed)
    slo = None
    if follower is not None:
        view = SloView(mirrors.nodes, objects.mirror(NODE_SLOS, node_slo_of, slo_changed.set), follower, slo_changed)
        slo = NodeSloController(view, SloObjects(objects, clock, settings.slo), clock, settings)
    decisions = BusDecisions(access.wire)
    further: dict[str, LeaderController] = {
        "decisions": decisions,
        "pauses": PauseController(pauses, access.wire.bus, clock),
    }
    if settings.tide.enabled:
        evictions = AnnouncedEvictions(access.wire.bus, clock, leader, access.evictor, TIDE)
        moved = asyncio.Event()
        tide = tide_ports(objects, moved.set, PausableEvictions(evictions, pauses.why), decisions)
        further["tide"] = TideController(tide, settings.tide, clock, switch, moved)
    if settings.clock_bounds.enabled:
        further["clock_bounds"] = ClockBoundsController(objects, clock, switch, decisions)
    if settings.service_profiles.enabled:
        further["service_profiles"] = ServiceProfileController(objects, access.wire, clock, switch, decisions)
    if settings.vertical.enabled:
        seen = vertical_mirrors(objects, stock=settings.vertical.stock)
        further["vertical"] = VerticalController(objects, seen, clock, switch, decisions)
    if settings.overcommit.enabled:
        further["overcommit"] = OvercommitController(OvercommitView(objects), objects, decisions, clock, settings)
    if settings.recommendation.enabled:
        further["recommendation"] = _recommendation(objects, access.wire, decisions, settings.recommendation, switch)
    return ClusterControllers(leader, LeaderControllers(nodes, configs, slo, further), mirrors, access.close)


def _recommendation(
    objects: LeaderObjects,
    wire: Wire,
    decisions: BusDecisions,
    settings: RecommendationSettings,
    switch: NodeSwitch,
) -> RecommendationController:
    changed = asyncio.Event()
    mirrors = RecommendMirrors(
        recommends=objects.mirror(RESOURCE_RECOMMENDS, recommend_of, changed.set),
        # Their pods and templates change all the time, and a pass comes soon enough.
        deployments=objects.mirror(DEPLOYMENTS, deployment_of, lambda: None),
        pods=objects.mirror(PODS, pod_of_workload, lambda: None),
    )
    ports = RecommendPorts(mirrors, wire.bus, RecommendObjects(objects), decisions, switch)
    return RecommendationController(ports, wire.clock, settings, changed)


def _logins(context: Context, settings: LoginSettings | None, kube: "Kube") -> Callout | None:
    if settings is None:
        return None
    from shared.adapters.kube.tokens import KubeTokens

    reviews, answers = KubeTokens(kube), {}
    for place, issuer in enumerate(settings.issuers):
        key = SigningKey(login_seed(issuer))
        logins = LoginController(reviews, key, context.clock, agents=settings.agents, unnamed=place == 0)
        answers[logins.issuer] = logins.answer
    return Callout(settings.url, name=f"central/{context.common.node}", clock=context.clock, answers=answers)


PLAN = Plan("central", build)
