"""`sublet get`: pods, the node's object and its taints."""

from typing import Annotated

import typer

from sublet.output import FormatOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(get)


def get(
    what: Annotated[str, typer.Argument(help="pods, pod/NAME, cnr, or node.", metavar="pods|pod/NAME|cnr|node")],
    name: Annotated[str, typer.Argument(help="Name of the pod, if not after pod/.", show_default=False)] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="For a name without one.")] = "default",
    output: FormatOption = "table",
) -> None:
    """Show pods, finished ones too, the node's object (CNR): what is offered to reclaimed pods now, or its taints."""
    from sublet.output import as_text
    from sublet.runtime.runtime import open_runtime
    from sublet.runtime.shown import cnr_table, documents, pods_table, select

    runtime = open_runtime()
    if what in {"cnr", "kcnr", "customnoderesource"}:
        from sublet.runtime.offer import read_cnr

        document = read_cnr(runtime)
        typer.echo(cnr_table(document) if output == "table" else as_text(document, output))
        return
    if what in {"node", "nodes", "no"}:
        from shared.adapters.taint_file import TaintFile
        from sublet.ask import target
        from sublet.views.taints import node_document, node_table

        node, taints = target().node, TaintFile(runtime.common.state_dir).standing()
        typer.echo(node_table(node, taints) if output == "table" else as_text(node_document(node, taints), output))
        return
    pods, single = select(runtime, what, name, namespace)
    typer.echo(pods_table(pods) if output == "table" else as_text(documents(pods, single=single), output))
