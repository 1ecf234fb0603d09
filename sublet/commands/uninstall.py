"""`sublet uninstall --kubernetes`: take from a cluster what Sublet, or a part of it that is off now, has put there."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.terminal.dry_run import DryRun


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(uninstall)


def uninstall(
    kubernetes: Annotated[bool, typer.Option("--kubernetes", help="From the nodes of a cluster.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PART", help="Only what a part has left that is off now; repeatable.")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the agents ran.")] = "sublet-system",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Whose API server; by default that of this pod's cluster.")
    ] = None,
    wait: Annotated[float, typer.Option(min=0, max=3600, help="Seconds to wait for the agents' end.")] = 300,
    dry_run: DryRun = False,
) -> None:
    """Take all marks of Sublet from a cluster. Reclaimed resources, taints, and the objects of each node.

    Waits until nobody runs any more who would write it all again. Configuration objects, which people wrote, stay.
    A dry run does not wait; the API server checks each change, and makes none.
    """
    import asyncio

    from shared.adapters.clock import SystemClock
    from shared.adapters.kube.client import Kube
    from shared.errors import Refused
    from sublet.cluster.leftovers.parts import PARTS, clear_parts
    from sublet.cluster.rehearsed import RehearsedKube
    from sublet.cluster.switched_off import SwitchedOff, clear_switched_off
    from sublet.cluster.uninstall import clear_cluster, uninstall_from_cluster
    from sublet.terminal.dry_run import dry

    if not kubernetes:
        raise Refused("uninstall: say from where: --kubernetes; on one host nothing stays once it is stopped",
                      reason="option")  # fmt: skip
    unknown = sorted(set(only or ()) - PARTS.keys())
    if unknown:
        raise Refused(f"--only: there is no part {unknown[0]!r}; want one of {', '.join(PARTS)}", reason="option")

    async def _rehearse(kube: Kube) -> None:
        def say(line: str) -> None:
            typer.echo(dry(line))

        await (clear_parts(kube, namespace, only, say) if only else clear_cluster(kube, namespace, say))

    async def go() -> None:
        kube, clock = (RehearsedKube if dry_run else Kube)(kubeconfig), SystemClock()
        try:
            if dry_run:
                await _rehearse(kube)
            elif only:
                await clear_switched_off(kube, clock, SwitchedOff(namespace, only, wait), typer.echo)
            else:
                await uninstall_from_cluster(kube, clock, namespace, wait_s=wait, say=typer.echo)
        finally:
            await kube.close()

    asyncio.run(go())
