"""`sublet top`: the CPU map, and what pools and pods use, refreshed each second."""

from typing import Annotated

import typer

PERIOD_S = 1.0
SCREEN = ("metrics", "qrm")
LIVE = ("metrics", "qrm", "evictor", "reporter")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(top)


def top(once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False) -> None:
    """Show CPU, load and memory of pools and pods as they change. And each CPU's pool; q ends, ? shows the keys.

    In a pipe, and on a terminal that can do no more than print (TERM=dumb), it is one frame.
    """
    import os
    import sys

    from rich.console import Console

    from shared.ports import Bus
    from sublet.ask import NOT_THERE, AskTarget, ask_all, run
    from sublet.output import print_rendered
    from sublet.views import top as view
    from sublet.views.facts import NodeFacts, read

    async def look(bus: Bus, where: AskTarget, services: tuple[str, ...]) -> NodeFacts:
        return read(where.node, await ask_all(bus, where.node, services))

    async def follow(bus: Bus, where: AskTarget) -> int:
        from sublet.live.app import TopApp

        await TopApp(lambda: look(bus, where, LIVE), PERIOD_S).run_async()
        return 0

    async def show(bus: Bus, where: AskTarget) -> int:
        console = Console()
        dumb = console.is_dumb_terminal or os.environ.get("TERM", "") in ("", "dumb", "unknown")
        if not once and not dumb and console.is_terminal and sys.stdin.isatty():
            return await follow(bus, where)
        facts = await look(bus, where, SCREEN)
        print_rendered(view.render(facts))
        return NOT_THERE if facts.sample is None else 0

    run(show)
