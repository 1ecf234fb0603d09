"""`sublet policy`: start a sizing policy of one's own, and run the laws over it."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.completion.names import complete_policy
from sublet.terminal.dry_run import DryRun
from sublet.terminal.formats import DOCUMENT

Place = Annotated[Path, typer.Option("--in", help="Make its folder in this one.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Write a sizing policy: start one, and test it.", no_args_is_help=True)
    group.command()(new)
    group.command()(test)
    app.add_typer(group, name="policy")


def new(
    name: Annotated[str, typer.Argument(help="Its name in the settings.")],
    place: Place = Path(),
    dry_run: DryRun = False,
) -> None:
    """Start a policy in a wheel of its own. A folder with a template that works, and its project file."""
    from sublet.laws.extension import POLICY
    from sublet.laws.start import StartedExtension
    from sublet.terminal.dry_run import dry

    started = StartedExtension(POLICY, name, place)
    if dry_run:
        for file in started.files():
            typer.echo(dry(f"{file} would be written"))
        return
    folder, module = started.write()
    typer.echo(f"{module} is a policy that works; change it, then:")
    typer.echo(f"    sublet policy test {module}")
    typer.echo(f"    pip install {folder}")
    typer.echo(f"    sublet replay FILE --policy canonical --policy {name}")


def test(
    policy: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_policy, metavar="NAME|FILE.py", help="An installed policy, or a file of one."
        ),
    ],
    output: Annotated[str, DOCUMENT.option] = "table",
) -> None:
    """Run the laws that every policy holds. Over made-up nodes; exit code 1 where one is broken."""
    from sublet.laws.check import check_policy
    from sublet.laws.extension import POLICY, find_extension
    from sublet.laws.printing import print_results

    wanted = DOCUMENT.read(output)
    found = find_extension(POLICY, policy)
    raise SystemExit(print_results(POLICY.registry.noun, found.extension.name, check_policy(found), wanted))
