"""`sublet doctor`: is everything there, before an installation and after it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublet.terminal.formats import DOCUMENT, document_text

if TYPE_CHECKING:
    from sublet.cluster.way import Way
    from sublet.doctor.finding import FindingRow


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    node: Annotated[bool, typer.Option("--node", help="Look at this machine.")] = False,
    cluster: Annotated[bool, typer.Option("--cluster", help="Look at a Kubernetes cluster.")] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Where Sublet is in the cluster, or is to be.")
    ] = "sublet-system",
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Which cluster; by default as kubectl, or that of this pod.")
    ] = None,
    installed: Annotated[
        bool,
        typer.Option(
            "--installed", help="Look at what is installed in the cluster alone; what cannot be seen is a problem."
        ),
    ] = False,
    upgrade: Annotated[
        Path | None,
        typer.Option(
            "--upgrade", metavar="CHART", help="Say what an upgrade of the cluster to this chart would change."
        ),
    ] = None,
    output: Annotated[str, DOCUMENT.option] = "table",
) -> None:
    """Check whether a node or a cluster is fit for Sublet. Kernel, control groups, kubelet, rights, bus, parts.

    Changes nothing. Each check says ok, warning, problem, or why it was not made, and what to do. Without --node and
    --cluster it looks at what is there. With --installed it asks whether an installation works, as `helm test` does.
    With --upgrade it looks at what the chart in that folder would change, and at nothing else. Exit code 1: there is
    a problem.
    """
    import asyncio

    from shared.errors import Unfit
    from sublet.cluster.way import require_way, way_to_cluster
    from sublet.doctor.finding import FindingRow, demanded, has_problem, unchecked
    from sublet.doctor.report import as_json, lines
    from sublet.invocation import as_plugin

    wanted = DOCUMENT.read(output)
    if upgrade is not None:
        changes = asyncio.run(_upgrade(require_way(kubeconfig), namespace, upgrade))
        typer.echo("\n".join(lines(changes)) if wanted.is_table else document_text(as_json(changes), wanted))
        raise SystemExit(1 if has_problem(changes) else 0)
    if installed:
        seen = demanded(asyncio.run(_cluster(require_way(kubeconfig), namespace, installed=True)))
        typer.echo("\n".join(lines(seen)) if wanted.is_table else document_text(as_json(seen), wanted))
        raise SystemExit(1 if has_problem(seen) else 0)
    neither = not node and not cluster
    way = require_way(kubeconfig) if cluster else way_to_cluster(kubeconfig) if neither else None
    rows: list[FindingRow] = []
    if node or (neither and not (as_plugin() and way is not None)):
        rows += asyncio.run(_node())
    if way is not None:
        try:
            rows += asyncio.run(_cluster(way, namespace))
        except Unfit as lack:
            if cluster:
                raise
            rows.append(FindingRow("cluster", "API server", unchecked(str(lack))))
    typer.echo("\n".join(lines(rows)) if wanted.is_table else document_text(as_json(rows), wanted))
    raise SystemExit(1 if has_problem(rows) else 0)


async def _node() -> "list[FindingRow]":
    from shared.errors import Unavailable
    from sublet.ask import AskTarget, target
    from sublet.doctor.finding import examine
    from sublet.doctor.node.checks import NODE_CHECKS
    from sublet.doctor.node.node_probe import HostProbe
    from sublet.instance import instance_settings, this_instance

    common = instance_settings()
    try:
        where = target()
    except Unavailable:  # root's bus: the check of the bus says that it lets nobody in without a login
        running = this_instance().running
        where = AskTarget(running.node, f"nats://{running.nats_server}") if running else AskTarget(common.node, "")
    probe = HostProbe(common.host_root, common.state_dir, where.nats_url, where.node)
    return examine(f"node {where.node}", NODE_CHECKS, await probe.facts())


async def _upgrade(way: "Way", namespace: str, folder: Path) -> "list[FindingRow]":
    from sublet.cluster.way import open_kube
    from sublet.doctor.finding import examine
    from sublet.doctor.upgrade.chart import read_chart
    from sublet.doctor.upgrade.checks import UPGRADE_CHECKS
    from sublet.doctor.upgrade.upgrade_probe import upgrade_facts

    chart = read_chart(folder)
    kube = open_kube(way)
    try:
        facts = await upgrade_facts(kube, namespace, chart)
    finally:
        await kube.close()
    return examine("upgrade", UPGRADE_CHECKS, facts)


async def _cluster(way: "Way", namespace: str, *, installed: bool = False) -> "list[FindingRow]":
    from shared.adapters.clock import SystemClock
    from sublet.cluster.way import open_kube
    from sublet.doctor.cluster.checks import CLUSTER_CHECKS, INSTALLED_CHECKS
    from sublet.doctor.cluster.cluster_probe import KubeProbe
    from sublet.doctor.finding import examine

    kube = open_kube(way)
    try:
        facts = await KubeProbe(kube, SystemClock(), str(way), namespace).facts()
    finally:
        await kube.close()
    return examine("cluster", INSTALLED_CHECKS if installed else CLUSTER_CHECKS, facts)
