"""`sublet status`: the node on one screen."""

from typing import Annotated, Literal

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(status)


def status(
    output: Annotated[Literal["screen", "json"], typer.Option("--output", "-o", help="screen, or json")] = "screen",
) -> None:
    """Show pools as a CPU map, the reclaimed offer, pods, services, conditions, taints and the last evictions."""
    import json

    from rich.console import Console

    from shared.ports import Bus
    from sublet.ask import NOT_THERE, Target, ask_all, run
    from sublet.views import status as view
    from sublet.views.facts import read

    async def show(bus: Bus, where: Target) -> int:
        facts = read(where.node, await ask_all(bus, where.node))
        if output == "json":
            typer.echo(json.dumps(view.as_json(facts), indent=2))
        else:
            Console().print(view.render(facts))
        return NOT_THERE if len(facts.silent) == len(facts.answers) else 0

    run(show)
