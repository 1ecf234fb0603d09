"""`sublet policy`: start a sizing policy of one's own, and run the laws over it."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.terminal.formats import DOCUMENT, document_text

Place = Annotated[Path, typer.Option("--in", help="Make its folder in this one.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Write a sizing policy: start one, and test it.", no_args_is_help=True)
    group.command()(new)
    group.command()(test)
    app.add_typer(group, name="policy")


def new(name: Annotated[str, typer.Argument(help="Its name in the settings.")], place: Place = Path()) -> None:
    """Start a policy in a wheel of its own: a folder with a template that works, and its project file."""
    from sublet.laws.start import start_policy

    folder, module = start_policy(name, place)
    typer.echo(f"{module} is a policy that works; change it, then:")
    typer.echo(f"    sublet policy test {module}")
    typer.echo(f"    pip install {folder}")
    typer.echo(f"    sublet replay FILE --policy canonical --policy {name}")


def test(
    policy: Annotated[str, typer.Argument(help="Name of an installed policy, or a file that ends in .py.")],
    output: Annotated[str, DOCUMENT.option] = "table",
) -> None:
    """Run the laws that every policy holds over made-up nodes; exit code 1 where one is broken."""
    from dataclasses import asdict

    from sublet.exit_codes import FAILED
    from sublet.laws.check import check_policy, find_policy

    wanted = DOCUMENT.read(output)
    found, results = find_policy(policy), []
    for result in check_policy(found):
        results.append(result)
        if wanted.is_table:
            typer.echo(f"{'holds ' if result.holds else 'BROKEN'}  {result.law}")
            if result.case:
                typer.echo("        " + result.case.replace("\n", "\n        "))
    broken = sum(not result.holds for result in results)
    if wanted.is_table:
        typer.echo(f"{found.name}: {len(results) - broken} of {len(results)} laws hold")
    else:
        laws = [asdict(result) for result in results]
        typer.echo(document_text({"policy": found.name, "broken": broken, "laws": laws}, wanted))
    raise SystemExit(FAILED if broken else 0)
