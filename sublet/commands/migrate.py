"""`sublet migrate`: from Koordinator or Katalyst to Sublet, step by step, each asked for by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sublet.terminal.formats import DOCUMENT, PLANS, document_text

if TYPE_CHECKING:
    from sublet.migrate.plan.line import MigrationPlan
    from sublet.migrate.takeover.run import Direction

Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="Read objects from a file or a folder (- is standard input), not a cluster."),
]
Kubeconfig = Annotated[Path | None, typer.Option(help="Which cluster; by default as kubectl, or that of this pod.")]
Nodes = Annotated[list[str] | None, typer.Argument(metavar="NODE...", help="Names of nodes.")]
Every = Annotated[bool, typer.Option("--all", help="Every node that is not there yet; ends at the first that fails.")]
Apply = Annotated[bool, typer.Option("--apply/--dry-run", help="Do it; without --apply it is only said.")]
Wait = Annotated[float, typer.Option(min=0, max=3600, help="Seconds to wait for each step of a node.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Where Sublet is in the cluster.")]
TAKEOVER_HELP = """\
Take nodes over, one after the other: the other agent leaves the node, then Sublet enforces. No pod restarts.

Without --apply it says what it would do. It may be repeated, and goes on where it was.
"""
BACK_HELP = """\
Give nodes back, one after the other: Sublet observes, then the other agent comes again. No pod restarts.

Without --apply it says what it would do. It may be repeated, and goes on where it was.
"""


class _Asked(NamedTuple):
    """The words of takeover and back."""

    direction: "Direction"
    system: str
    nodes: list[str] | None
    every: bool
    applies: bool
    wait_s: float


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Move from Koordinator or Katalyst to Sublet, step by step.", no_args_is_help=True)
    for system in ("koordinator", "katalyst"):
        group.add_typer(_of_system(system), name=system)
    app.add_typer(group, name="migrate")


def _of_system(system: str) -> typer.Typer:
    group = typer.Typer(help=f"From {system.title()}; start with plan.", no_args_is_help=True)
    _planning(group, system)
    _installing(group, system)
    if system == "koordinator":  # Katalyst's agent and ours write the same objects: they never run on one node
        _comparing(group)
    _handing_over(group, system, "takeover", TAKEOVER_HELP)
    _handing_over(group, system, "back", BACK_HELP)
    return group


def _planning(group: typer.Typer, system: str) -> None:
    def plan(
        files: Files = None,
        values: Annotated[
            Path | None, typer.Option("--values", help="Write values for Sublet's chart into this file.")
        ] = None,
        kubeconfig: Kubeconfig = None,
        output: Annotated[str, PLANS.option] = "table",
    ) -> None:
        """Say line by line what maps to what, what does not, why, and what to do. Changes nothing.

        The exit code is 2 where something cannot be used.
        """
        from sublet.exit_codes import OK, REFUSED
        from sublet.migrate.plan.printing import plan_table, summary, values_text, write_values

        wanted = PLANS.read(output)
        found = _plan(system, files, kubeconfig)
        typer.echo(
            plan_table(found, wide=wanted.kind == "wide")
            if wanted.is_table
            else document_text(found.document(), wanted)
        )
        typer.echo(summary(found), err=True)
        if values is not None:
            write_values(values, values_text(found))
            typer.echo(f"{values}: written", err=True)
        raise typer.Exit(REFUSED if found.faults else OK)

    group.command()(plan)


def _installing(group: typer.Typer, system: str) -> None:
    def install(
        values: Annotated[str, typer.Option("--values", help="The file of values that plan wrote.")] = "values.yaml",
        namespace: Namespace = "sublet-system",
        kubeconfig: Kubeconfig = None,
        output: Annotated[str, DOCUMENT.option] = "table",
    ) -> None:
        """Print the command that installs Sublet beside the other agent, and check that both do not write the same.

        Changes nothing. Exit code 1: both write the same.
        """
        from sublet.cluster.options import ask_cluster
        from sublet.doctor.finding import examine, has_problem
        from sublet.doctor.report import as_json, lines
        from sublet.migrate.takeover.beside import BESIDE_CHECKS
        from sublet.migrate.takeover.cluster import KubeHandover
        from sublet.migrate.takeover.origin import ORIGINS

        wanted = DOCUMENT.read(output)
        facts = ask_cluster(kubeconfig, lambda kube: KubeHandover(kube, ORIGINS[system], namespace).beside(values))
        rows = examine("cluster", BESIDE_CHECKS, facts)
        typer.echo("\n".join(lines(rows)) if wanted.is_table else document_text(as_json(rows), wanted))
        raise typer.Exit(1 if has_problem(rows) else 0)

    group.command()(install)


def _comparing(group: typer.Typer) -> None:
    def compare(
        for_: Annotated[str, typer.Option("--for", metavar="DURATION", help="How long, as 1h.")] = "1h",
        kubeconfig: Kubeconfig = None,
        output: Annotated[str, DOCUMENT.option] = "table",
    ) -> None:
        """Compare what koordlet gives on this node with what Sublet, observing, would give. Changes nothing.

        Runs in the agent's pod of the node. Ctrl-C prints what there is so far.
        """
        import sys

        from shared.ports import Bus
        from sublet.ask import AskTarget, run
        from sublet.migrate.compare.live import compare_here
        from sublet.migrate.compare.printing import ComparisonLine, comparison_document, comparison_table
        from sublet.timespec import parse_duration_s

        wanted, for_s = DOCUMENT.read(output), parse_duration_s(for_)
        line = ComparisonLine(for_s, sys.stderr)

        async def work(bus: Bus, where: AskTarget) -> int:
            found = await compare_here(bus, where, for_s, kubeconfig, line.show)
            line.end()
            typer.echo(
                comparison_table(*found) if wanted.is_table else document_text(comparison_document(*found), wanted)
            )
            return 0 if found[0].rows() else 1

        run(work)

    group.command()(compare)


def _handing_over(group: typer.Typer, system: str, direction: "Direction", says: str) -> None:
    def hand_over(
        nodes: Nodes = None,
        every: Every = False,
        apply: Apply = False,
        wait: Wait = 300,
        namespace: Namespace = "sublet-system",
        kubeconfig: Kubeconfig = None,
    ) -> None:
        _hand_over(_Asked(direction, system, nodes, every, apply, wait), namespace, kubeconfig)

    group.command(direction, help=says)(hand_over)


def _plan(system: str, files: list[str] | None, kubeconfig: Path | None) -> "MigrationPlan":
    from sublet.cluster.options import ask_cluster
    from sublet.migrate.plan.cluster import KINDS, read_cluster_objects
    from sublet.migrate.plan.objects import read_objects
    from sublet.migrate.plan.systems import PLANNERS

    kinds = KINDS[system]
    objects = read_objects(files) if files else ask_cluster(kubeconfig, lambda kube: read_cluster_objects(kube, kinds))
    return PLANNERS[system](objects)


def _hand_over(asked: _Asked, namespace: str, kubeconfig: Path | None) -> None:
    """Hand nodes over, or back.

    Raises:
        Refused: neither nodes nor --all, or both.
    """
    from shared.adapters.clock import SystemClock
    from shared.errors import Refused
    from sublet.cluster.options import ask_cluster
    from sublet.migrate.takeover.cluster import KubeHandover
    from sublet.migrate.takeover.origin import ORIGINS
    from sublet.migrate.takeover.run import Handover, hand_over

    if bool(asked.nodes) == asked.every:
        raise Refused(f"{asked.direction}: name nodes, or say --all", reason="option")
    origin = ORIGINS[asked.system]
    wanted = Handover(asked.direction, origin, tuple(asked.nodes or ()), asked.applies, asked.wait_s)
    ask_cluster(
        kubeconfig,
        lambda kube: hand_over(wanted, KubeHandover(kube, origin, namespace), SystemClock(), typer.echo),
    )
