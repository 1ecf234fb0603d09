"""`sublet get`: pods, the node's object and its taints."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublet.cluster.options import ClusterOption, KubeconfigOption, cluster_meant
from sublet.completion.names import complete_object
from sublet.terminal.formats import OBJECTS, OutputFormat, printed

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.adapters.local.runtime import Runtime
    from shared.adapters.local.stored_pod import StoredPod
    from sublet.pods.choosing import PodChoice

NODE_OBJECTS = ("cnr", "kcnr", "customnoderesource")
NODES = ("node", "nodes", "no")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(get)


def get(
    words: Annotated[
        list[str],
        typer.Argument(
            help="What, and names where not all are meant.",
            autocompletion=complete_object,
            metavar="pods|pod/NAME|cnr|node [NAME]...",
        ),
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Pods of this one; without it of all, and for a name of default.")
    ] = "",
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods of every namespace.")] = False,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Pods with these labels: app=web,tier!=db, 'app in (a,b)', !app.")
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Pods: go on with what changes, until Ctrl-C.")] = False,
    output: Annotated[str, OBJECTS.option] = "table",
    cluster: ClusterOption = False,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Show pods, the node's object (CNR) or its taints. Finished pods too; what is offered now."""
    wanted = OBJECTS.read(output)
    kind, _, inner = words[0].partition("/")
    names = ([inner] if inner else []) + words[1:]
    if cluster_meant(cluster, kubeconfig):
        _get_of_cluster(kubeconfig, kind, names, wanted)
        return
    from shared.adapters.local.runtime import open_runtime
    from shared.errors import Refused
    from sublet.ask import target
    from sublet.instance import writable_settings
    from sublet.pods.choosing import POD_KINDS, PodChoice, pod_names
    from sublet.pods.label_selector import read_selector
    from sublet.pods.shown import objects

    if kind in NODE_OBJECTS + NODES and (watch or selector or everywhere or namespace):
        raise Refused(f"get {kind}: --watch, --selector and namespaces are for pods; leave them out", reason="option")
    if kind in NODE_OBJECTS:
        _print(printed(objects.node_object_listed(open_runtime(writable_settings()), names), wanted))
    elif kind in NODES:
        runtime = open_runtime(writable_settings())
        _print(printed(objects.node_listed(runtime, target().node, names), wanted))
    elif kind in POD_KINDS:
        choice = PodChoice(pod_names(words, command="get"), "" if everywhere else namespace, read_selector(selector))
        _get_pods(open_runtime(writable_settings()), choice, wanted, watch=watch)
    else:
        raise Refused(f"get {words[0]!r}: want pods, pod/NAME, cnr or node", reason="kind")


def _get_pods(runtime: "Runtime", choice: "PodChoice", wanted: OutputFormat, *, watch: bool) -> None:
    from shared.errors import Refused
    from sublet.pods.choosing import chosen_pods
    from sublet.pods.shown.objects import pods_listed

    def choose() -> "list[StoredPod]":
        return chosen_pods(runtime, choice)

    if not watch:
        _print(printed(pods_listed(choose(), single=len(choice.names) == 1), wanted))
    elif wanted.is_table:
        _watch(runtime, choose, wide=wanted.kind == "wide")
    else:
        raise Refused(f"--watch prints lines: want -o table or wide, not {wanted.kind}", reason="option")


def _watch(runtime: "Runtime", choose: "Callable[[], list[StoredPod]]", *, wide: bool) -> None:
    import sys
    import time

    from sublet.pods.shown.watching import watched_lines

    for text in watched_lines(runtime, choose, time.sleep, wide=wide):
        typer.echo(text)
        sys.stdout.flush()


def _print(text: str) -> None:
    if text:
        typer.echo(text)


def _get_of_cluster(kubeconfig: Path | None, kind: str, names: list[str], wanted: OutputFormat) -> None:
    from datetime import UTC, datetime

    from shared.errors import Refused
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.reading import read_node_objects
    from sublet.terminal.formats import ObjectList
    from sublet.views.cluster.table import node_table

    if kind not in NODE_OBJECTS + NODES or len(names) > 1:
        raise Refused(
            f"get {' '.join([kind, *names])!r} of a cluster: want node or cnr, and one name at most; for the rest use "
            "kubectl get",
            reason="kind",
        )
    found = ask_cluster(kubeconfig, lambda kube: read_node_objects(kube, names[0] if names else ""))
    listed = ObjectList(
        tuple(f"cnr/{one.get('metadata', {}).get('name', '')}" for one in found),
        lambda _wide: node_table(found, datetime.now(UTC)),
        lambda: found[0] if names else {"apiVersion": "v1", "kind": "List", "items": found},
    )
    _print(printed(listed, wanted))
