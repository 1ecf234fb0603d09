"""Wiring of central: the configuration of all nodes comes from a file, and in a cluster from its objects as well."""

from services.central.app import NAME, CentralApp
from services.central.cluster import Cluster
from services.central.settings import CentralSettings
from services.central.watched_file import WatchedFile
from shared.app import App, Context, Plan
from shared.settings import section


def build(context: Context) -> App:
    """Central over `config_file`, by default `<state_dir>/config.yaml`."""
    settings = section(CentralSettings, context.raw, NAME)
    path = settings.config_file or context.common.state_dir / "config.yaml"
    cluster = _in_a_cluster(context, settings) if context.common.substrate == "kubernetes" else None
    return CentralApp(context.wire, context.clock, WatchedFile(path), str(path), context.raw, cluster)


def _in_a_cluster(context: Context, settings: CentralSettings) -> Cluster:
    from shared.adapters.kube_client import Kube
    from shared.adapters.kube_evictor import KubeEvictor
    from shared.adapters.kube_objects import KubeObjects

    kube, clock = Kube(context.common.kubeconfig), context.clock
    identity = f"{context.common.node}_{context.wire.boot_id}"
    return Cluster(
        KubeObjects(kube, clock), context.wire.bus, clock, identity, settings.kubernetes, KubeEvictor(kube), kube.close
    )


PLAN = Plan("central", build)
