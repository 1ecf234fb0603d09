"""`sublet leave`: what a node's agent leaves behind is given back when Sublet is uninstalled."""

import asyncio
import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command; nobody types it, the agent's pod runs it at its end."""
    app.command(hidden=True)(leave)


def leave(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the agents ran.")],
    daemonset: Annotated[str, typer.Option(help="What makes the agents.")] = "sublet-node",
) -> None:
    """Give pods their CPUs, weights and limits as kubelet made them, if Sublet has left the cluster.

    Where the DaemonSet still stands, this is an update or a restart, and nothing is changed.
    """
    from services.qrm.main import leave as give_back
    from shared.adapters.kube_client import Kube
    from shared.settings import common_settings, raw_settings
    from sublet.leaving import is_uninstalled

    common = common_settings(raw_settings())

    async def uninstalled() -> bool:
        kube = Kube(common.kubeconfig)
        try:
            return await is_uninstalled(kube, namespace, daemonset)
        finally:
            await kube.close()

    if not asyncio.run(uninstalled()):
        typer.echo(f"daemonset {namespace}/{daemonset} stands: the node keeps what is set")
        return
    problems = give_back(common)
    for problem in problems:
        typer.echo(f"sublet leave: {problem.group}: {problem.why}", err=True)
    typer.echo("Sublet is gone: pods have their CPUs, weights and limits as kubelet made them")
    sys.exit(1 if problems else 0)
