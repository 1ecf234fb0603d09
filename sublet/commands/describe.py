"""`sublet describe`: all that is stored of pods or of this node."""

from typing import Annotated

import typer

from sublet.completion.names import complete_object

NODES = ("node", "nodes", "no", "cnr")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(describe)


def describe(
    words: Annotated[
        list[str], typer.Argument(autocompletion=complete_object, help="Which.", metavar="pod/NAME...|pods|node")
    ],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Of the pods; for a name default.")] = "",
    selector: Annotated[str, typer.Option("--selector", "-l", help="Pods with these labels.")] = "",
) -> None:
    """Show all that is stored of pods, or of this node. What was decided for a pod says `sublet explain`."""
    from shared.adapters.local.runtime import open_runtime
    from sublet.instance import writable_settings
    from sublet.pods.choosing import PodChoice, chosen_pods, pod_names
    from sublet.pods.label_selector import read_selector
    from sublet.pods.shown.describe import describe_pod

    kind, _, inner = words[0].partition("/")
    if kind in NODES:
        _describe_node(([inner] if inner else []) + words[1:])
        return
    choice = PodChoice(pod_names(words, command="describe"), namespace, read_selector(selector))
    pods = chosen_pods(open_runtime(writable_settings()), choice)
    typer.echo("\n\n".join(map(describe_pod, pods)) or "no pods")


def _describe_node(names: list[str]) -> None:
    from shared.adapters.files.taints import TaintFile
    from shared.adapters.local.runtime import open_runtime
    from shared.errors import Unavailable
    from sublet.ask import target
    from sublet.instance import writable_settings
    from sublet.pods.choosing import PodChoice, chosen_pods
    from sublet.pods.offer import read_cnr
    from sublet.pods.shown.describe import describe_node
    from sublet.pods.shown.objects import node_listed

    runtime, node = open_runtime(writable_settings()), target().node
    node_listed(runtime, node, names)
    try:
        cnr = read_cnr(runtime)
    except Unavailable:
        cnr = None
    taints = TaintFile(runtime.common.state_dir).standing()
    typer.echo(describe_node(node, taints, cnr, chosen_pods(runtime, PodChoice())))
