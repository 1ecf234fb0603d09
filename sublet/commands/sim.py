"""`sublet sim`: run a scenario on a simulated machine in virtual time; nothing real is touched."""

from typing import Annotated

import typer

from sublet.completion.names import complete_scenario
from sublet.exit_codes import FAILED, OK
from sublet.terminal.formats import OBJECTS, ObjectList, document_text, printed


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(sim)


def sim(
    scenario: Annotated[
        str, typer.Argument(autocompletion=complete_scenario, help="A scenario file, or the name of a built-in one.")
    ] = "quickstart",
    output: Annotated[str, OBJECTS.option] = "table",
    list_them: Annotated[bool, typer.Option("--list", help="List the built-in scenarios and run none.")] = False,
) -> None:
    """Run a scenario with the real services on a simulated machine. Exit code 1: it did not happen as written."""
    from shared import telemetry
    from shared.errors import Refused
    from sublet.output import columns
    from sublet.sim.report import as_document, as_table
    from sublet.sim.run import NODE, run_scenario
    from sublet.sim.scenario import built_in_names, load_scenario

    wanted = OBJECTS.read(output)
    if list_them:
        about = [{"name": name, "about": load_scenario(name).about} for name in built_in_names()]
        listed = ObjectList(
            tuple(f"scenario/{one['name']}" for one in about),
            lambda _wide: columns(("NAME", "ABOUT"), [(one["name"], one["about"]) for one in about]),
            lambda: about,
        )
        typer.echo(printed(listed, wanted))
        return
    if wanted.kind == "name":
        raise Refused(f"sim {scenario}: -o name is for --list; want table, json or yaml", reason="option")
    telemetry.setup_logging("sim", NODE, as_json=False, level="error")
    report = run_scenario(load_scenario(scenario))
    typer.echo(as_table(report).removesuffix("\n") if wanted.is_table else document_text(as_document(report), wanted))
    raise SystemExit(OK if report.ok else FAILED)
