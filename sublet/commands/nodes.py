"""`sublet nodes`: the nodes of a cluster, sorted, chosen, and watched."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from sublet.cluster.options import KubeconfigOption
from sublet.terminal.formats import OBJECTS, ObjectList, OutputFormat, printed

if TYPE_CHECKING:
    from collections.abc import Callable

    from sublet.cluster.reading import ClusterReading
    from sublet.views.cluster.selection import NodeChoice

EVERY_BOUNDS_S = (1.0, 3600.0)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(nodes)


def nodes(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these nodes.")] = None,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Nodes with these labels: pool=green,arch!=arm64.")
    ] = "",
    not_ready: Annotated[
        bool, typer.Option("--not-ready", help="Only nodes whose agent is not well, withdrawn or tainted ones.")
    ] = False,
    sort: Annotated[
        str, typer.Option("--sort", help="name, cpu, memory, agent, version, said, pool or zone.")
    ] = "name",
    reverse: Annotated[bool, typer.Option("--reverse", "-r", help="The other way round.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with what changes, until Ctrl-C.")] = False,
    every_s: Annotated[float, typer.Option("--every", help="With --watch: seconds between two looks.")] = 5.0,
    output: Annotated[str, OBJECTS.option] = "table",
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Show the nodes of a cluster and what each offers. And whether its agent is well, its version and its taints.

    CPU and MEMORY are what reclaimed pods may have, ON-NODE the CPU that a scheduler sees. -o wide: pool, zone and
    whether the offer is withdrawn. Sorted by cpu or memory the largest comes first; what is not known comes last.
    """
    from shared.adapters.clock import SystemClock
    from shared.errors import Refused
    from sublet.cluster.options import ask_cluster
    from sublet.cluster.reading import read_nodes
    from sublet.pods.label_selector import admits, read_selector
    from sublet.views.cluster.selection import NodeChoice, sorts

    wanted = OBJECTS.read(output)
    plain = tuple(name.removeprefix("node/") for name in names or ())
    choice = NodeChoice(plain, partial(admits, read_selector(selector)), not_ready, sorts(sort), reverse)
    least_s, most_s = EVERY_BOUNDS_S
    if not least_s <= every_s <= most_s:
        raise Refused(f"--every {every_s:g}: want {least_s:g} to {most_s:g} s", reason="option")

    def read() -> "ClusterReading":
        return ask_cluster(kubeconfig, lambda kube: read_nodes(kube, SystemClock()))

    if watch:
        _watch(read, choice, every_s, wanted)
    else:
        _print(read(), choice, wanted, single=len(plain) == 1)


def _print(reading: "ClusterReading", choice: "NodeChoice", wanted: OutputFormat, *, single: bool) -> None:
    from sublet.views.cluster.selection import chosen_rows, names_of
    from sublet.views.cluster.table import node_lines

    rows = chosen_rows(reading, choice)
    listed = ObjectList(
        names_of(rows),
        lambda wide: node_lines(rows, reading.now, wide=wide) if rows else "no nodes",
        lambda: rows[0] if single else list(rows),
    )
    if text := printed(listed, wanted):
        typer.echo(text)


def _watch(read: "Callable[[], ClusterReading]", choice: "NodeChoice", every_s: float, wanted: OutputFormat) -> None:
    import sys
    import time

    from shared.errors import Refused
    from sublet.views.cluster.selection import watched_lines

    if not wanted.is_table:
        raise Refused(f"--watch prints lines: want -o table or wide, not {wanted.kind}", reason="option")
    for text in watched_lines(read, choice, lambda: time.sleep(every_s), wide=wanted.kind == "wide"):
        typer.echo(text)
        sys.stdout.flush()
