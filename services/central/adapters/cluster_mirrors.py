"""The mirrors of the API server's objects, each reduced to what decisions need."""

from collections.abc import Callable

from services.central.core.objects.companions import companion_of
from services.central.core.objects.nodes import NODE_LEASES, agent_of, node_of
from services.central.core.rollout.config_documents import kcc_of, target_of
from services.central.core.rollout.plan import CONFIG_KINDS
from services.central.core.slo.config_map import config_map_of
from services.central.ports.mirrors import ClusterMirrors, RenewedLeases, SeenChanges
from services.central.settings import KubernetesSettings
from shared.core.api_kind import CNCS, CNRS, CONFIG_MAPS, KCCS, LEASES, NODES, PODS
from shared.ports import Objects


def mirror_cluster(objects: Objects, changed: Callable[[], None], settings: KubernetesSettings) -> ClusterMirrors:
    """Mirrors that call `changed` when configuration or Nodes change; leases and agents are read once a second anyway.

    They are filled once somebody runs them.
    """
    slo, changes, renewals = settings.slo, SeenChanges(), RenewedLeases()

    def seen() -> None:
        changes.add()
        changed()

    return ClusterMirrors(
        nodes=objects.mirror(NODES, node_of, seen),
        cnrs=objects.mirror(CNRS, companion_of, seen),
        cncs=objects.mirror(CNCS, companion_of, changed),
        kccs=objects.mirror(KCCS, kcc_of, changed),
        targets={kind.plural: objects.mirror(kind, target_of, changed) for kind in CONFIG_KINDS},
        agents=objects.mirror(PODS, agent_of, changes.add, labels=settings.agent_labels),
        leases=objects.mirror(LEASES, renewals.read, _ignore, namespace=NODE_LEASES),
        renewals=renewals,
        changes=changes,
        slo=objects.mirror_one(CONFIG_MAPS, slo.name, config_map_of, changed, namespace=slo.namespace)
        if slo.enabled
        else None,
    )


def _ignore() -> None:
    """Do nothing: readers poll the mirror."""
