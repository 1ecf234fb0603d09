"""`sublet leave`: what a node's agent leaves behind is given back when Sublet is uninstalled."""

from typing import Annotated

import typer

from sublet.exit_codes import FAILED
from sublet.terminal.stderr import print_error

PATIENCE_S = 10.0
"""Where Sublet has been installed anew meanwhile, another watchdog writes to the node by now."""
LONG_PATIENCE_S = 300.0
"""Agents may take their whole grace to end."""


def register(app: typer.Typer) -> None:
    """Add the command; nobody types it, the agent's pod runs it at its end, and a pod of the uninstall."""
    app.command(hidden=True)(leave)


def leave(
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where the agents ran.")] = "sublet-system",
    daemonset: Annotated[str, typer.Option(help="What makes the agents.")] = "sublet-node",
    uninstalled: Annotated[bool, typer.Option("--uninstalled", help="Do not ask: Sublet has left.")] = False,
) -> None:
    """Give pods their CPUs, weights and limits as kubelet made them, if Sublet has left the cluster.

    Where the DaemonSet still stands, this is an update or a restart, and nothing is changed. So it is where nobody
    says that it is gone: the reclaimed limits are at their floor by then, and stay there.
    """
    import asyncio

    from services.qrm.main import restore
    from shared.adapters.kube.client import Kube
    from shared.settings import common_settings, raw_settings
    from sublet.cluster.uninstalled import is_uninstalled
    from sublet.state.folder import remove_what_was_learned

    common = common_settings(raw_settings())

    async def gone() -> bool:
        kube = Kube(common.kubeconfig)
        try:
            return await is_uninstalled(kube, namespace, daemonset)
        finally:
            await kube.close()

    if not uninstalled and not asyncio.run(gone()):
        typer.echo(f"daemonset {namespace}/{daemonset} is not known to be gone: the node keeps what is set")
        return
    problems = restore(common, patience_s=LONG_PATIENCE_S if uninstalled else PATIENCE_S)
    for problem in problems:
        print_error(f"{problem.group}: {problem.why}")
    if problems:
        raise SystemExit(FAILED)
    remove_what_was_learned(common.state_dir)
    typer.echo("Sublet is gone: pods have their CPUs, weights and limits as kubelet made them")
