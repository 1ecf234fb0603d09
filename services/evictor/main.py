"""Wires the evictor: its ledger in the state folder, and who evicts and taints on this substrate."""

from dataclasses import replace

from services.evictor.adapters.cluster_pauses import ClusterPauses
from services.evictor.app import EvictorApp
from services.evictor.ports import EvictorPorts
from services.evictor.settings import NAME, EvictorSettings
from shared.adapters.files.pause import PauseFile
from shared.adapters.files.taints import TaintFile
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.adapters.local.evictor import LocalEvictor, SimEvictor
from shared.app import App, Context, Plan
from shared.contracts.cluster.pauses import POOL_LABEL
from shared.core.api_kind import NODES
from shared.errors import Unavailable
from shared.ports import EvictionActuator
from shared.settings import merge, section

OWN_WORK = {"plugins": {"cpu_load": {"enabled": False}}}
"""On a single host a tenant is its owner's own work, so many threads alone are no reason to evict it, unless the
settings say so."""


def build(context: Context) -> App:
    """The evictor over this substrate's actuator and taints.

    Raises:
        BadConfig: its section cannot be used.
    """
    if context.common.substrate == "host":  # in the static section, onto which a reconfiguration is merged
        context = replace(context, raw={**context.raw, NAME: merge(OWN_WORK, context.raw.get(NAME) or {})})
    settings = section(EvictorSettings, context.raw, NAME)
    ledger = SqliteLedger(context.common.state_dir, max_bytes=settings.ledger_max_bytes)
    ports = (_of_kubernetes if context.common.substrate == "kubernetes" else _of_host)(context, ledger)
    return EvictorApp(context, ports, settings)


def _of_host(context: Context, ledger: SqliteLedger) -> EvictorPorts:
    common = context.common
    actuator: EvictionActuator = SimEvictor(common.state_dir)
    if common.substrate == "host":
        actuator = LocalEvictor(common.state_dir, Cgroups(common.host_root), context.clock)
    paused, taints = PauseFile(common.state_dir).why, TaintFile(common.state_dir)
    return EvictorPorts(ledger, actuator, paused, taints)


def _of_kubernetes(context: Context, ledger: SqliteLedger) -> EvictorPorts:
    # Imported here: one host has no use for the client of Kubernetes.
    from shared.adapters.kube.client import Kube, KubeError
    from shared.adapters.kube.evictor import MANAGER, KubeEvictor
    from shared.adapters.kube.objects import KubeObjects
    from shared.adapters.kube.taints import KubeTaints

    common, kube = context.common, Kube(context.common.kubeconfig)
    taints = KubeTaints(kube, common.node, KubeObjects(kube, context.clock, manager=MANAGER))
    paused = PauseFile(common.state_dir).why

    async def pool() -> str:
        try:
            node = await kube.get(NODES.path(common.node))
        except KubeError as error:
            raise Unavailable(str(error), reason=error.reason) from error
        return str((node["metadata"].get("labels") or {}).get(POOL_LABEL) or "")

    pauses = ClusterPauses(common.state_dir, pool, context.clock)
    return EvictorPorts(ledger, KubeEvictor(kube), paused, taints, kube.close, pauses)


PLAN = Plan(NAME, build)
