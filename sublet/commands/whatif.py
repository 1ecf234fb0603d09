"""`sublet whatif`: ask one decision of the product what it would do."""

import sys
from typing import Annotated

import typer

from sublet.completion.names import complete_kind
from sublet.exit_codes import REFUSED


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(whatif)


def whatif(
    kind: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_kind, help="The decision; its inputs are read from stdin as one JSON object."
        ),
    ] = "",
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='Read lines {"id", "kind", "inputs"} and print one line for each.')
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Name, area and meaning of every kind.")] = False,
    schema: Annotated[str, typer.Option("--schema", metavar="KIND", help="JSON Schemas of a kind.")] = "",
) -> None:
    """Ask a decision of the product what it would do: typed inputs in, typed outputs out, nothing is touched."""
    if sum(map(bool, (kind, jsonl, listing, schema))) != 1:
        raise typer.BadParameter("want exactly one of KIND, --jsonl, --list, --schema KIND")
    from sublet import whatif as door

    known = door.kinds()
    if listing:
        _print(*door.listing(known))
        return
    if jsonl:
        for line in door.stream(known, sys.stdin.buffer):
            _print(line)
        return
    line, well = door.schema(known, schema) if schema else door.ask(known, kind, sys.stdin.buffer.read())
    _print(line)
    if not well:
        raise typer.Exit(REFUSED)


def _print(*lines: str) -> None:
    """Each answer leaves at once: another program may wait for it before it asks again."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
