"""Wiring of the reporter: a file of the host's, or the API server's objects of this node and its pods."""

from services.reporter.app import Beside, ReporterApp
from shared.adapters.files.node import NodeFile
from shared.app import App, Context, Plan


def build(context: Context) -> App:
    """The reporter over `<state_dir>/cnr.json`, or over the API server."""
    if context.common.substrate == "kubernetes":
        return _in_a_cluster(context)
    writer = NodeFile(context.common.state_dir / "cnr.json")
    return ReporterApp(context.wire, context.clock, writer, context.raw)


def _in_a_cluster(context: Context) -> App:
    from shared.adapters.files.pods import PodsFile
    from shared.adapters.kube.client import Kube
    from shared.adapters.kube.node import KubeNode
    from shared.adapters.kube.pods import KubePods

    common, kube = context.common, Kube(context.common.kubeconfig)
    pods = KubePods(kube, common.node, PodsFile(common.state_dir), context.clock, fallback=common.qos_fallback)
    node = KubeNode(kube, common.node, pods.asked)
    beside = Beside(lambda: pods.run(node), pods.failure, kube.close)
    return ReporterApp(context.wire, context.clock, node, context.raw, beside)


PLAN = Plan("reporter", build)
