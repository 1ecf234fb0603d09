"""`sublet top`: the CPU map, and what pools and pods use, refreshed each second."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(top)


def top(once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False) -> None:
    """Show each CPU's pool, and CPU, load and memory of each pool and pod, until Ctrl-C."""
    import asyncio

    from rich.console import Console, RenderableType
    from rich.live import Live

    from shared.ports import Bus
    from sublet.ask import NOT_THERE, AskTarget, ask_all, run
    from sublet.views import top as view
    from sublet.views.facts import NodeFacts, read

    period_s = 1.0

    async def look(bus: Bus, where: AskTarget) -> NodeFacts:
        return read(where.node, await ask_all(bus, where.node, ("metrics", "qrm")))

    async def follow(bus: Bus, where: AskTarget) -> int:
        frame: RenderableType = ""
        with Live(frame, auto_refresh=False, screen=True) as live:
            while True:
                live.update(view.render(await look(bus, where)), refresh=True)
                await asyncio.sleep(period_s)

    async def show(bus: Bus, where: AskTarget) -> int:
        console = Console()
        if not once and console.is_terminal:
            return await follow(bus, where)
        facts = await look(bus, where)
        console.print(view.render(facts))
        return NOT_THERE if facts.sample is None else 0

    run(show)
