"""`sublet get`: pods, the node's object and its taints."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.cluster.options import ClusterOption, KubeconfigOption, cluster_meant
from sublet.output import Format, FormatOption

NODE_OBJECTS = ("cnr", "kcnr", "customnoderesource")
NODES = ("node", "nodes", "no")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(get)


def get(
    what: Annotated[str, typer.Argument(help="pods, pod/NAME, cnr, or node.", metavar="pods|pod/NAME|cnr|node")],
    name: Annotated[str, typer.Argument(help="Name of the pod, or of the node.", show_default=False)] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For a name without one.")] = "default",
    output: FormatOption = "table",
    cluster: ClusterOption = False,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Show pods, finished ones too, the node's object (CNR): what is offered to reclaimed pods now, or its taints."""
    if cluster_meant(cluster, kubeconfig):
        _get_of_cluster(kubeconfig, what, name, output)
        return
    from shared.adapters.local.runtime import open_runtime
    from sublet.instance import writable_settings
    from sublet.output import as_text
    from sublet.pods.pod_view import cnr_table, documents, pods_table, select

    runtime = open_runtime(writable_settings())
    if what in NODE_OBJECTS:
        from sublet.pods.offer import read_cnr

        document = read_cnr(runtime)
        typer.echo(cnr_table(document) if output == "table" else as_text(document, output))
        return
    if what in NODES:
        from shared.adapters.files.taints import TaintFile
        from sublet.ask import target
        from sublet.views.taints import node_document, node_table

        node, taints = target().node, TaintFile(runtime.common.state_dir).standing()
        typer.echo(node_table(node, taints) if output == "table" else as_text(node_document(node, taints), output))
        return
    pods, single = select(runtime, what, name, namespace)
    typer.echo(pods_table(pods) if output == "table" else as_text(documents(pods, single=single), output))


def _get_of_cluster(kubeconfig: Path | None, what: str, name: str, output: Format) -> None:
    from datetime import UTC, datetime

    from shared.errors import Refused
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.reading import read_node_objects
    from sublet.output import as_text
    from sublet.views.cluster import node_table

    if what not in NODE_OBJECTS + NODES:
        raise Refused(f"get {what!r} of a cluster: want node or cnr; for all else there is kubectl get", reason="kind")
    found = ask_cluster(kubeconfig, lambda kube: read_node_objects(kube, name))
    if output == "table":
        typer.echo(node_table(found, datetime.now(UTC)))
        return
    typer.echo(as_text(found[0] if name else {"apiVersion": "v1", "kind": "List", "items": found}, output))
