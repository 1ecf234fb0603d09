"""Options of the commands that can address a cluster."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from shared.adapters.kube.client import Kube

ClusterOption = Annotated[bool, typer.Option("--cluster", help="Of a cluster, as its API server tells it: no bus.")]
KubeconfigOption = Annotated[Path | None, typer.Option(help="Which cluster; by default as kubectl.")]
SystemOption = Annotated[str, typer.Option("--system", help="Namespace of the cluster in which Sublet is.")]

T = TypeVar("T")


def cluster_meant(asked: bool, kubeconfig: Path | None) -> bool:
    """Whether the API server is to be asked: so it was said, or kubectl called and no bus was named."""
    from shared.settings import raw_settings
    from sublet.invocation import as_plugin

    return asked or kubeconfig is not None or (as_plugin() and "nats_url" not in raw_settings())


def ask_cluster(kubeconfig: Path | None, ask: "Callable[[Kube], Awaitable[T]]", *, rehearsed: bool = False) -> T:
    """One question to the cluster's API server; `rehearsed`: whatever it writes is a dry run.

    Raises:
        Unavailable: there is no way to a cluster, or no answer.
        Unfit: as `open_kube`.
        Refused: as the question itself.
    """
    import asyncio

    from sublet.cluster.rehearsed import RehearsedKube
    from sublet.cluster.way import open_kube, require_way

    async def go() -> T:
        way = require_way(kubeconfig)
        kube = RehearsedKube(way.kubeconfig) if rehearsed else open_kube(way)
        try:
            return await ask(kube)
        finally:
            await kube.close()

    return asyncio.run(go())
