"""`python -m services.central.webhook` answers the API server about pods, Koordinator's ConfigMap, and the status of
over-committed Nodes.

The webhook needs only the API server, so it answers while NATS or central is away. It has its own readiness: only a
replica that has its profiles and its certificate receives requests.
"""

import asyncio

from services.central.adapters.https.server import HttpsServer
from services.central.adapters.https.serving_secret import ServingNames, ServingSecret
from services.central.adapters.webhook.authorities import WebhookAuthorities
from services.central.https_main import HttpsParts, HttpsPlan, run_alone
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.overcommit.answers import NodeStatusAnswers
from services.central.profiles.answers import ProfileAnswers
from services.central.profiles.controller import ProfileController, StatusWriter
from services.central.profiles.mirrors import ProfileMirrors
from services.central.serving.process import HttpsProcess
from services.central.serving.serving import Serving
from services.central.settings import LeaseSettings, WebhookSettings
from services.central.slo.answers import SloConfigAnswers
from shared.ports import Clock, Objects

NAME, MANAGER = "webhook", "sublet-webhook"


def build(parts: HttpsParts) -> HttpsProcess:
    """One of the replicas, by `kubernetes.webhook`."""
    settings = parts.settings.kubernetes.webhook or WebhookSettings()
    return build_webhook(parts.objects, parts.clock, settings, parts.identity)


def build_webhook(objects: Objects, clock: Clock, settings: WebhookSettings, identity: str) -> HttpsProcess:
    """Mirrors, server, certificate and statuses; every writer goes through the leader."""
    lease = LeaseSettings(name=settings.service, namespace=settings.namespace)
    leader, changed = Leader(objects, clock, identity, lease), asyncio.Event()
    writing = LeaderObjects(objects, leader)
    mirrors = ProfileMirrors(objects, changed, applied=settings.profiles)
    routes = [*ProfileAnswers(mirrors, objects, clock, gated=settings.gate).routes, SloConfigAnswers(clock).route]
    if settings.node_status:
        routes.append(NodeStatusAnswers(clock).route)
    names = ServingNames(settings.secret, settings.namespace, settings.names)
    secret = ServingSecret(writing, clock, names, WebhookAuthorities(writing, settings.configuration))
    serving = Serving(
        HttpsServer(routes, host=settings.host, port=settings.port), secret, clock,
        # Before the first list a pod would be answered without its profiles, so the port stays closed until then.
        missing=lambda: mirrors.failure, leading=lambda: leader.leading,
    )  # fmt: skip
    writer = StatusWriter(mirrors, writing, leader, clock, changed)
    return HttpsProcess(NAME, clock, leader, ProfileController(mirrors, serving, writer))


PLAN = HttpsPlan(NAME, MANAGER, build)

if __name__ == "__main__":
    run_alone(PLAN)
