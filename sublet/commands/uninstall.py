"""`sublet uninstall --kubernetes`: take from a cluster's nodes what Sublet has put there."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(uninstall)


def uninstall(
    kubernetes: Annotated[bool, typer.Option("--kubernetes", help="From the nodes of a cluster.")] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the agents ran.")] = "sublet-system",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Whose API server; by default that of this pod's cluster.")
    ] = None,
    wait: Annotated[float, typer.Option(min=0, max=3600, help="Seconds to wait for the agents' end.")] = 300,
) -> None:
    """Take reclaimed resources and pressure taints from all Nodes, and delete the objects of each node.

    Waits until no agent runs any more, which would write it all again. Configuration objects, which people wrote, stay.
    """
    import asyncio

    from shared.adapters.clock import SystemClock
    from shared.adapters.kube.client import Kube
    from shared.errors import Refused
    from sublet.cluster.uninstall import uninstall_from_cluster

    if not kubernetes:
        raise Refused("uninstall: say from where: --kubernetes; on one host nothing stays once it is stopped",
                      reason="option")  # fmt: skip

    async def go() -> None:
        kube = Kube(kubeconfig)
        try:
            await uninstall_from_cluster(kube, SystemClock(), namespace, wait_s=wait, say=typer.echo)
        finally:
            await kube.close()

    asyncio.run(go())
