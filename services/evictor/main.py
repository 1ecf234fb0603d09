"""Wiring of the evictor: its ledger in the state folder, and who evicts and taints on this substrate."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from services.evictor.app import EvictorApp
from services.evictor.settings import SECTION
from shared.adapters.cgroup import Cgroups
from shared.adapters.ledger import SqliteLedger
from shared.adapters.local_evictor import LocalEvictor, SimEvictor
from shared.adapters.pause_file import PauseFile
from shared.adapters.taint_file import TaintFile
from shared.app import App, Context, Plan
from shared.ports import EvictionActuator, NodeTaints
from shared.settings import merge

OWN_WORK = {"plugins": {"cpu_load": {"enabled": False}}}
"""On one host a tenant is its owner's own work: many threads alone are no reason to end it, unless he says so."""


class ClusterEvictorApp(EvictorApp):
    """The evictor with connections to the API server, which it closes last."""

    def __init__(self, *wired: Any, close: Callable[[], Awaitable[None]]) -> None:
        super().__init__(*wired)
        self._close_connections = close

    async def close(self) -> None:
        """As the evictor, and the connections."""
        try:
            await super().close()
        finally:
            await self._close_connections()


def build(context: Context) -> App:
    """The evictor over this substrate's actuator and taints.

    Raises:
        BadConfig: its section cannot be used.
    """
    section = context.raw.get(SECTION) or {}
    match context.common.substrate:
        case "host":
            return _on_one_host(context, merge(OWN_WORK, section), _local(context))
        case "sim":
            return _on_one_host(context, section, SimEvictor(context.common.state_dir))
        case "kubernetes":
            return _in_a_cluster(context, section)


def _on_one_host(context: Context, section: Mapping[str, Any], actuator: EvictionActuator) -> App:
    return EvictorApp(*_wired(context, section, actuator, TaintFile(context.common.state_dir)))


def _in_a_cluster(context: Context, section: Mapping[str, Any]) -> App:
    from shared.adapters.kube_client import Kube
    from shared.adapters.kube_evictor import KubeEvictor
    from shared.adapters.kube_taints import KubeTaints

    kube = Kube(context.common.kubeconfig)
    wired = _wired(context, section, KubeEvictor(kube), KubeTaints(kube, context.common.node))
    return ClusterEvictorApp(*wired, close=kube.close)


def _wired(
    context: Context, section: Mapping[str, Any], actuator: EvictionActuator, taints: NodeTaints
) -> tuple[Any, ...]:
    state_dir = context.common.state_dir
    return context.wire, SqliteLedger(state_dir), actuator, section, PauseFile(state_dir).why, taints


def _local(context: Context) -> EvictionActuator:
    return LocalEvictor(context.common.state_dir, Cgroups(context.common.host_root), context.clock)


PLAN = Plan(SECTION, build)
