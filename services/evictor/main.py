"""Wiring of the evictor: its ledger in the state folder, and who evicts and taints on this substrate."""

from services.evictor.app import EvictorApp
from services.evictor.settings import SECTION
from shared.adapters.files.pause import PauseFile
from shared.adapters.files.taints import TaintFile
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.adapters.local.evictor import LocalEvictor, SimEvictor
from shared.app import App, Context, Plan
from shared.ports import EvictionActuator
from shared.settings import merge

OWN_WORK = {"plugins": {"cpu_load": {"enabled": False}}}
"""On one host a tenant is its owner's own work: many threads alone are no reason to end it, unless he says so."""


def build(context: Context) -> App:
    """The evictor over this substrate's actuator and taints.

    Raises:
        BadConfig: its section cannot be used.
    """
    common, section = context.common, context.raw.get(SECTION) or {}
    ledger, paused = SqliteLedger(common.state_dir), PauseFile(common.state_dir).why
    if common.substrate == "kubernetes":
        from shared.adapters.kube.client import Kube
        from shared.adapters.kube.evictor import MANAGER, KubeEvictor
        from shared.adapters.kube.objects import KubeObjects
        from shared.adapters.kube.taints import KubeTaints

        kube = Kube(common.kubeconfig)
        taints = KubeTaints(kube, common.node, KubeObjects(kube, context.clock, manager=MANAGER))
        return EvictorApp(context.wire, ledger, KubeEvictor(kube), section, paused, taints, release=kube.close)
    actuator: EvictionActuator = SimEvictor(common.state_dir)
    if common.substrate == "host":
        section = merge(OWN_WORK, section)
        actuator = LocalEvictor(common.state_dir, Cgroups(common.host_root), context.clock)
    return EvictorApp(context.wire, ledger, actuator, section, paused, TaintFile(common.state_dir))


PLAN = Plan(SECTION, build)
