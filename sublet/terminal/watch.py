"""`--watch`: a command gives its answer again and again, until Ctrl-C."""

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

PERIOD_S = 2.0
Watch = Annotated[
    bool, typer.Option("--watch", "-w", help=f"Look again every {PERIOD_S:g} s, until Ctrl-C or until nobody answers.")
]


async def watched(
    look: Callable[[], Awaitable[int]], *, watch: bool, wait: Callable[[float], Awaitable[object]] | None = None
) -> int:
    """The exit code of one look; with `watch` it looks without an end.

    On a terminal each answer takes the place of the one before; in a pipe it follows it.
    """
    import asyncio

    from rich.console import Console

    while watch:
        Console().clear()
        await look()
        sys.stdout.flush()
        await (wait or asyncio.sleep)(PERIOD_S)
    return await look()
