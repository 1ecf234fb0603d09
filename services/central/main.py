"""Wiring of central: the configuration of all nodes comes from a file, and in a cluster from its objects as well."""

from typing import TYPE_CHECKING

from services.central.adapters.watched_file import WatchedFile
from services.central.app import NAME, CentralApp
from services.central.cluster.cluster import Cluster
from services.central.logins.bus_logins import BusLogins, login_seed
from services.central.lost_nodes.cnr_conditions import MANAGER
from services.central.settings import CentralSettings, LoginSettings
from shared.adapters.ed25519 import SigningKey
from shared.adapters.nats.callout import Callout
from shared.app import App, Context, Plan
from shared.settings import section

if TYPE_CHECKING:
    from shared.adapters.kube.client import Kube


def build(context: Context) -> App:
    """Central over `config_file`, by default `<state_dir>/config.yaml`."""
    settings = section(CentralSettings, context.raw, NAME)
    path = settings.config_file or context.common.state_dir / "config.yaml"
    text = (WatchedFile(path), str(path))
    if context.common.substrate != "kubernetes":
        return CentralApp(context.wire, context.clock, *text, context.raw)
    from shared.adapters.kube.client import Kube

    kube = Kube(context.common.kubeconfig)
    cluster, logins = _in_a_cluster(context, settings, kube), _logins(context, settings.kubernetes.logins, kube)
    return CentralApp(context.wire, context.clock, *text, context.raw, cluster, logins)


def _in_a_cluster(context: Context, settings: CentralSettings, kube: "Kube") -> Cluster:
    from shared.adapters.kube.evictor import KubeEvictor
    from shared.adapters.kube.objects import KubeObjects

    clock, identity = context.clock, f"{context.common.node}_{context.wire.boot_id}"
    objects = KubeObjects(kube, clock, manager=MANAGER)
    return Cluster(objects, context.wire.bus, clock, identity, settings.kubernetes, KubeEvictor(kube), kube.close)


def _logins(context: Context, settings: LoginSettings | None, kube: "Kube") -> Callout | None:
    if settings is None:
        return None
    from shared.adapters.kube.tokens import KubeTokens

    reviews, answers = KubeTokens(kube), {}
    for place, issuer in enumerate(settings.issuers):
        key = SigningKey(login_seed(issuer))
        logins = BusLogins(reviews, key, context.clock, agents=settings.agents, unnamed=place == 0)
        answers[logins.issuer] = logins.answer
    return Callout(settings.url, name=f"central/{context.common.node}", clock=context.clock, answers=answers)


PLAN = Plan("central", build)
