"""`sublet migrate`: from Koordinator or Katalyst to Sublet, step by step, each asked for by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublet.terminal.formats import PLANS, document_text

if TYPE_CHECKING:
    from sublet.migrate.plan.line import MigrationPlan

Files = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", help="Read objects from a file or a folder (- is standard input), not a cluster."),
]
Kubeconfig = Annotated[Path | None, typer.Option(help="Which cluster; by default as kubectl, or that of this pod.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Move from Koordinator or Katalyst to Sublet, step by step.", no_args_is_help=True)
    for system in ("koordinator", "katalyst"):
        group.add_typer(_of_system(system), name=system)
    app.add_typer(group, name="migrate")


def _of_system(system: str) -> typer.Typer:
    group = typer.Typer(help=f"From {system.title()}; start with plan.", no_args_is_help=True)

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
    return group


def _plan(system: str, files: list[str] | None, kubeconfig: Path | None) -> "MigrationPlan":
    from sublet.cluster.options import ask_cluster
    from sublet.migrate.plan.cluster import KINDS, read_cluster_objects
    from sublet.migrate.plan.objects import read_objects
    from sublet.migrate.plan.systems import PLANNERS

    kinds = KINDS[system]
    objects = read_objects(files) if files else ask_cluster(kubeconfig, lambda kube: read_cluster_objects(kube, kinds))
    return PLANNERS[system](objects)
