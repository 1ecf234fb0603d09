"""`python -m services.central.metrics_api` serves custom and external metrics to the API server, from nodes'
figures.

Every replica receives every node's messages and stores all of them, so each can answer by itself. Requests come through
the API server's front proxy, which has already authorized them.
"""

from services.central.adapters.https.server import HttpsServer
from services.central.adapters.https.serving_secret import ServingNames, ServingSecret
from services.central.adapters.metrics_api.api_services import ApiServiceAuthorities
from services.central.adapters.metrics_api.page_reader import read_page
from services.central.adapters.metrics_api.proxied_server import ProxiedServer
from services.central.core.custom_metrics.store import MetricStore, StoreBounds
from services.central.custom_metrics.answers import MetricsAnswers
from services.central.custom_metrics.controller import MetricsController, MetricsInputs
from services.central.custom_metrics.intake import FiguresIntake
from services.central.custom_metrics.mirrors import MetricsMirrors
from services.central.custom_metrics.pages import PodPages
from services.central.https_main import HttpsParts, HttpsPlan, run_alone
from services.central.leadership.leader import Leader
from services.central.leadership.objects import LeaderObjects
from services.central.serving.process import HttpsProcess
from services.central.serving.serving import Serving
from services.central.settings import LeaseSettings

NAME, MANAGER = "metrics-api", "sublet-metrics-api"


def build(parts: HttpsParts) -> HttpsProcess:
    """One of the replicas, by `kubernetes.metrics_api`."""
    settings, clock = parts.settings.kubernetes.metrics_api, parts.clock
    leader = Leader(
        parts.objects, clock, parts.identity, LeaseSettings(name=settings.service, namespace=settings.namespace)
    )
    writing, mirrors = LeaderObjects(parts.objects, leader), MetricsMirrors(parts.objects)
    bounds = StoreBounds(settings.max_series, settings.max_samples, settings.max_object_series)
    store = MetricStore(settings.keep_s, mirrors.labels, bounds)
    server = HttpsServer(MetricsAnswers(store, mirrors, clock).routes, host=settings.host, port=settings.port)
    names = ServingNames(settings.secret, settings.namespace, settings.names)
    authorities = ApiServiceAuthorities(writing, settings.service, settings.namespace)
    serving = Serving(
        ProxiedServer(server, lambda: mirrors.proxy), ServingSecret(writing, clock, names, authorities), clock,
        missing=lambda: mirrors.failure, leading=lambda: leader.leading,
    )  # fmt: skip
    pages = PodPages(store, mirrors, read_page, clock, keep_s=settings.keep_s) if settings.pages else None
    inputs = MetricsInputs(FiguresIntake(store, mirrors, clock), parts.bus.get, pages)
    return HttpsProcess(NAME, clock, leader, MetricsController(mirrors, inputs, serving, clock))


PLAN = HttpsPlan(NAME, MANAGER, build)

if __name__ == "__main__":
    run_alone(PLAN)
