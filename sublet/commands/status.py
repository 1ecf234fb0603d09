"""`sublet status`: the node on one screen, or a cluster in one line a node."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublet.cluster.options import ClusterOption, KubeconfigOption, SystemOption, cluster_meant
from sublet.terminal.formats import OBJECTS, ObjectList, OutputFormat, document_text, printed
from sublet.terminal.watch import Watch, watched

if TYPE_CHECKING:
    from shared.adapters.kube.client import Kube


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    watch: Watch = False,
    output: Annotated[str, OBJECTS.option] = "table",
    cluster: ClusterOption = False,
    kubeconfig: KubeconfigOption = None,
    system: SystemOption = "sublet-system",
) -> None:
    """Show this node: pools, offer, pods, services, last evictions. Pools as a CPU map; conditions and taints too.

    With -o wide each pod too. Of a cluster: what each node offers, whether its agent is well, who leads, and what has
    become of configuration.
    Exit code of a node: 0 ready; 1 not ready, evictions paused, or configuration refused; 3 nobody answers.
    """
    wanted = OBJECTS.read(output)
    if cluster_meant(cluster, kubeconfig):
        _show_cluster(kubeconfig, system, wanted, watch=watch)
        return

    from shared.ports import Bus
    from sublet.ask import NOT_THERE, AskTarget, ask_all, run
    from sublet.exit_codes import FAILED, OK
    from sublet.instance import service_logs, this_instance
    from sublet.state.memory_only import memory_only_words
    from sublet.terminal.stderr import print_error

    running = this_instance().running

    async def show(bus: Bus, where: AskTarget) -> int:
        # Only where somebody can be asked: what shows the answers takes as long to load as the bus.
        from sublet.output import print_rendered
        from sublet.views import status as view
        from sublet.views.facts import read
        from sublet.views.headline import headline

        if running is not None and (cost := memory_only_words(Path(running.state_dir))):
            print_error(cost)
        facts = read(where.node, await ask_all(bus, where.node, where.services))
        if wanted.is_table:
            print_rendered(view.render(facts, service_logs(), wide=wanted.kind == "wide"))
        else:
            typer.echo(f"node/{facts.node}" if wanted.kind == "name" else document_text(view.as_json(facts), wanted))
        if len(facts.silent) == len(facts.answers):
            return NOT_THERE
        return OK if headline(facts).ready else FAILED

    run(lambda bus, where: watched(lambda: show(bus, where), watch=watch))


def _show_cluster(kubeconfig: Path | None, namespace: str, wanted: OutputFormat, *, watch: bool) -> None:
    from shared.adapters.clock import SystemClock
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.reading import read_cluster
    from sublet.views.cluster import table as view

    async def look(kube: "Kube") -> int:
        reading = await read_cluster(kube, SystemClock(), namespace)
        names = tuple(f"node/{row['node']}" for row in view.node_rows(reading))
        listed = ObjectList(names, lambda _wide: view.render(reading), lambda: view.as_json(reading))
        typer.echo(printed(listed, wanted))
        return 0

    ask_cluster(kubeconfig, lambda kube: watched(lambda: look(kube), watch=watch))
