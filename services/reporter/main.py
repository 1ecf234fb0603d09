"""Build the reporter: over a file of this host, or over the API server's objects of this node and its pods."""

from dataclasses import replace
from functools import partial

from services.reporter.app import ReporterApp
from services.reporter.core.mid.stored_past import MAX_PAST_BYTES
from services.reporter.ports import ReporterPorts, SideTask
from services.reporter.reports import node_metric, resource_status
from services.reporter.settings import NAME, ReporterSettings
from shared.adapters.files.node import NodeFile
from shared.adapters.files.past import PastFile
from shared.adapters.host.kubelet_checkpoints import KubeletCheckpoints
from shared.adapters.host.sysfs import read_topology
from shared.app import App, Context, Plan
from shared.settings import section


def build(context: Context) -> App:
    """The reporter over `<state_dir>/cnr.json`, or over the API server.

    Raises:
        BadConfig: its section cannot be used.
    """
    in_a_cluster = context.common.substrate == "kubernetes"
    ports = _of_a_cluster(context) if in_a_cluster else ReporterPorts(NodeFile(context.common.state_dir / "cnr.json"))
    past = PastFile(context.common.state_dir / "usage-past.json", MAX_PAST_BYTES)
    ports = replace(ports, past=past, topology=partial(read_topology, context.common.host_root))
    return ReporterApp(context, ports, section(ReporterSettings, context.raw, NAME))


def _of_a_cluster(context: Context) -> ReporterPorts:
    # Imported here: the client of the API server costs memory, and a single host never needs it.
    from shared.adapters.files.pods import PodsFile
    from shared.adapters.kube.client import Kube
    from shared.adapters.kube.node import KubeNode
    from shared.adapters.kube.objects import KubeObjects
    from shared.adapters.kube.pods import KubePods

    common, kube = context.common, Kube(context.common.kubeconfig)
    # The other services of the node have no way to the API server: they read the pods from this file.
    pods = KubePods(kube, common.node, PodsFile(common.state_dir), context.clock, fallback=common.qos_fallback)
    node = KubeNode(kube, common.node, pods.asked)
    side_task = SideTask(lambda: pods.run(node), pods.failure, kube.close)
    return ReporterPorts(
        node,
        side_task,
        lambda: node.seen,
        lambda: node.withdrawn,
        objects=KubeObjects(kube, context.clock, manager=node_metric.MANAGER),
        pods=KubeObjects(kube, context.clock, manager=resource_status.MANAGER),
        managers=KubeletCheckpoints(common.host_root).read,
    )


PLAN = Plan(NAME, build)
