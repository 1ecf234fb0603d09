"""`sublet plugin`: start an eviction plugin of one's own, and run the laws over it."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.completion.names import complete_plugin
from sublet.terminal.dry_run import DryRun
from sublet.terminal.formats import DOCUMENT

Place = Annotated[Path, typer.Option("--in", help="Make its folder in this one.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Write an eviction plugin: start one, and test it.", no_args_is_help=True)
    group.command()(new)
    group.command()(test)
    app.add_typer(group, name="plugin")


def new(
    name: Annotated[str, typer.Argument(help="Its name in the settings.")],
    place: Place = Path(),
    dry_run: DryRun = False,
) -> None:
    """Start a plugin in a wheel of its own. A folder with a template that works, and its project file."""
    from sublet.laws.extension import PLUGIN
    from sublet.laws.start import StartedExtension
    from sublet.terminal.dry_run import dry

    started = StartedExtension(PLUGIN, name, place)
    if dry_run:
        for file in started.files():
            typer.echo(dry(f"{file} would be written"))
        return
    folder, module = started.write()
    typer.echo(f"{module} is a plugin that works; change it, then:")
    typer.echo(f"    sublet plugin test {module}")
    typer.echo(f"    pip install {folder}")
    typer.echo(f"    SUBLET_EVICTOR__PLUGINS__{name.upper()}__ENABLED=true sublet up")


def test(
    plugin: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_plugin, metavar="NAME|FILE.py", help="An installed plugin, or a file of one."
        ),
    ],
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of it, for this test.")
    ] = None,
    output: Annotated[str, DOCUMENT.option] = "table",
) -> None:
    """Run the laws that every plugin holds. Over a made-up node; exit code 1 where one is broken."""
    from sublet.laws.check import check_plugin
    from sublet.laws.extension import PLUGIN, find_extension
    from sublet.laws.given_settings import given_settings
    from sublet.laws.printing import print_results

    wanted = DOCUMENT.read(output)
    found = find_extension(PLUGIN, plugin)
    results = check_plugin(found, given_settings(given or ()))
    raise SystemExit(print_results(PLUGIN.registry.noun, found.extension.name, results, wanted))
