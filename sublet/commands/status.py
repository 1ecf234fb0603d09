"""`sublet status`: the node on one screen, or a cluster in one line a node."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sublet.cluster.options import ClusterOption, KubeconfigOption, SystemOption, cluster_meant


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    output: Annotated[Literal["screen", "json"], typer.Option("--output", "-o", help="screen, or json")] = "screen",
    cluster: ClusterOption = False,
    kubeconfig: KubeconfigOption = None,
    system: SystemOption = "sublet-system",
) -> None:
    """Show pools as a CPU map, the reclaimed offer, pods, services, conditions, taints and the last evictions.

    Of a cluster: what each node offers, whether its agent is well, who leads, and what has become of configuration.
    Exit code of a node: 0 ready; 1 not ready, evictions paused, or configuration refused; 3 nobody answers.
    """
    import json

    if cluster_meant(cluster, kubeconfig):
        _show_cluster(kubeconfig, system, as_json=output == "json")
        return

    from rich.console import Console

    from shared.ports import Bus
    from sublet.ask import NOT_THERE, AskTarget, ask_all, run
    from sublet.exit_codes import FAILED, OK
    from sublet.instance import service_logs
    from sublet.views import status as view
    from sublet.views.facts import read
    from sublet.views.headline import headline

    async def show(bus: Bus, where: AskTarget) -> int:
        facts = read(where.node, await ask_all(bus, where.node, where.services))
        if output == "json":
            typer.echo(json.dumps(view.as_json(facts), indent=2))
        else:
            Console().print(view.render(facts, service_logs()))
        if len(facts.silent) == len(facts.answers):
            return NOT_THERE
        return OK if headline(facts).ready else FAILED

    run(show)


def _show_cluster(kubeconfig: Path | None, namespace: str, *, as_json: bool) -> None:
    import json

    from shared.adapters.clock import SystemClock
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.reading import read_cluster
    from sublet.views import cluster as view

    reading = ask_cluster(kubeconfig, lambda kube: read_cluster(kube, SystemClock(), namespace))
    typer.echo(json.dumps(view.as_json(reading), indent=2) if as_json else view.render(reading))
