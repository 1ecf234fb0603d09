"""`sublet config`: the configuration that central hands to every node."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sublet.completion.names import complete_setting
from sublet.terminal.dry_run import DryRun
from sublet.terminal.formats import DOCUMENT, OBJECTS, ObjectList, document_text, printed
from sublet.terminal.watch import Watch, watched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sublet.configuration.slo import SloReport
    from sublet.terminal.formats import OutputFormat

Output = Annotated[str, DOCUMENT.option]
Document = Annotated[str, typer.Option("--file", "-f", help="YAML: {section: {setting: value}}; - is standard input.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Take away whole sections without a question.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Show, check or change the configuration of all nodes.", no_args_is_help=True)
    for command in (show, status, validate, diff, apply, history, rollback, explain, schema, slo):
        group.command()(command)
    app.add_typer(group, name="config")


def show(output: Output = "table") -> None:
    """Print the configuration in force and its revision."""
    from shared.ports import Bus
    from sublet.ask import AskTarget, ask, run
    from sublet.configuration.difference import as_text
    from sublet.configuration.revisions import read_in_force
    from sublet.views.answer_shapes import well_shaped

    wanted = DOCUMENT.read(output)

    async def work(bus: Bus, where: AskTarget) -> int:
        in_force = await read_in_force(bus)
        central = well_shaped("central", await ask(bus, where.node, "central") or {}).get("config") or {}
        refused = central.get("refused")
        if not wanted.is_table:
            document = {"revision": in_force.number, "configuration": in_force.document, "refused": refused}
            typer.echo(document_text(document, wanted))
            return 0
        if in_force.number == 0:
            typer.echo("# nothing is set: every service uses its own settings")
        else:
            typer.echo(f"# revision {in_force.number}")
            kept = in_force.document
            typer.echo("# it cannot be read\n" if kept is None else as_text(kept), nl=False)
        if refused:
            typer.echo(f"# refused since: {refused}", err=True)
        return 0

    run(work)


def status(watch: Watch = False, output: Output = "table") -> None:
    """Show how many nodes work with the newest revision. And how many refuse it and why, and so of each service here.

    The exit code is 1 where anybody refuses anything: what was in force before stays.
    """
    from shared.errors import Unavailable
    from shared.ports import Bus
    from sublet.ask import AskTarget, ask_all, run
    from sublet.views.config import status as view
    from sublet.views.facts import read

    wanted = DOCUMENT.read(output)

    async def look(bus: Bus, where: AskTarget) -> int:
        facts = read(where.node, await ask_all(bus, where.node, ("reporter", "central")))
        if facts.answers["central"] is None:
            raise Unavailable(f"central of {where.node} does not answer: see `sublet status`")
        document = view.as_json(facts)
        typer.echo("\n".join(view.lines(document)) if wanted.is_table else document_text(document, wanted))
        return int(view.refused(document))

    run(lambda bus, where: watched(lambda: look(bus, where), watch=watch))


def validate(
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", help="YAML: {section: {setting: value}}; several are checked.")
    ] = None,
    output: Output = "table",
) -> None:
    """Check configurations and settings as the services do. Settings: SUBLET_* and SUBLET_CONFIG; no Sublet
    has to run. All that is wrong is said at once; the exit code is 2 then, and 0 where nothing is.
    """
    import os

    from sublet.validation.findings import validate_config, validate_settings
    from sublet.validation.given import given_settings
    from sublet.validation.printing import print_verdicts

    wanted = DOCUMENT.read(output)
    settings = given_settings(os.environ)
    verdicts = {"settings": validate_settings(settings)}
    if not verdicts["settings"].findings:
        verdicts |= {one: validate_config(one, settings)[1] for one in file or ()}
    raise SystemExit(print_verdicts(verdicts, wanted))


def diff(file: Document, output: Output = "table") -> None:
    """Show what a configuration would change of the one in force. Exit code: 0 nothing, 1 something."""
    from shared.ports import Bus
    from sublet.ask import AskTarget, run
    from sublet.configuration.difference import Difference
    from sublet.configuration.revisions import read_in_force
    from sublet.exit_codes import FAILED, OK

    wanted = DOCUMENT.read(output)
    _, document = _valid(file)

    async def work(bus: Bus, _where: AskTarget) -> int:
        in_force = await read_in_force(bus)
        difference = Difference(in_force.document or {}, document)
        if not wanted.is_table:
            typer.echo(document_text({"revision": in_force.number, "changes": difference.rows()}, wanted))
        elif not difference.empty:
            typer.echo(difference.text(f"revision {in_force.number}", file))
        return OK if difference.empty else FAILED

    run(work)


def apply(file: Document, yes: Yes = False, dry_run: DryRun = False) -> None:
    """Check a configuration and publish it for all nodes. Central publishes it; this waits until it has.

    It is written to the file that central reads by this command's own settings, or by those of `sublet up` here. One
    that is empty, or without a section that is in force, is published only after a question, or with --yes.
    """
    from sublet.ask import run
    from sublet.configuration.publishing import Wanted, publish

    text, document = _valid(file)
    run(lambda bus, where: publish(bus, where, Wanted(text, document, file, yes, dry_run)))


def history(output: Annotated[str, OBJECTS.option] = "table") -> None:
    """List the revisions that are kept, the newest last. With the time, and by which central from which file.

    With -o wide how many values each sets.
    """
    from shared.ports import Bus
    from sublet.ask import AskTarget, run
    from sublet.configuration.revisions import read_revisions, revisions_table

    wanted = OBJECTS.read(output)

    async def work(bus: Bus, _where: AskTarget) -> int:
        found = await read_revisions(bus)
        listed = ObjectList(
            tuple(f"revision/{one.number}" for one in found),
            lambda wide: revisions_table(found, wide=wide),
            lambda: [one.row() for one in found],
        )
        if text := printed(listed, wanted):
            typer.echo(text)
        return 0

    run(work)


def rollback(
    revision: Annotated[int, typer.Argument(min=1, metavar="REVISION")], yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Publish an earlier revision once more, as a new one. It is checked before."""
    from shared.ports import Bus
    from sublet.ask import AskTarget, run
    from sublet.configuration.difference import as_text
    from sublet.configuration.publishing import Wanted, publish
    from sublet.configuration.revisions import find_revision, read_revisions

    async def work(bus: Bus, where: AskTarget) -> int:
        name = f"revision {revision}"
        text = as_text(find_revision(await read_revisions(bus), revision))
        return await publish(bus, where, Wanted(text, _valid_text(text, name), name, yes, dry_run))

    run(work)


def explain(
    key: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_setting,
            metavar="KEY",
            help="As advisor.reserve_cores, SUBLET_QRM__MODE, qrm or all.",
        ),
    ],
    output: Output = "table",
) -> None:
    """Say what a setting means. And what it may be, its unit and its default."""
    from sublet.settings_page.explain import documents, explain_key, explained

    wanted = DOCUMENT.read(output)
    about, found = explain_key(key)
    typer.echo(explained(about, found) if wanted.is_table else document_text(documents(found), wanted))


def schema(
    of: Annotated[
        Literal["configuration", "settings"], typer.Option(help="A configuration, or a settings file (SUBLET_CONFIG).")
    ] = "configuration",
) -> None:
    """Print a JSON Schema of the file. An editor checks the file with it and completes its keys."""
    import json

    from sublet.settings_page.schema import document_schema

    typer.echo(json.dumps(document_schema(of), indent=2))


def slo(
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", help="The ConfigMap slo-controller-config, as YAML; - is standard input."),
    ] = None,
    node: Annotated[str | None, typer.Option("--node", help="Ask what is in force on this node instead.")] = None,
    labels: Annotated[str, typer.Option("--labels", "-l", help="Labels of the node: zone=a,disk=ssd.")] = "",
    settings: Annotated[
        bool, typer.Option("--settings", help="Print Sublet's settings that mean the same, as YAML.")
    ] = False,
    output: Output = "table",
) -> None:
    """Say what Koordinator's ConfigMap comes to on a node. By its labels, value by value, and whose each is; or,
    with --node, what of the ConfigMap that central follows is in force on a node.

    What is wrong with it, and what nobody reads, goes to standard error; the exit code is 2 where anything is wrong.
    """
    from shared.errors import Refused
    from shared.ports import Bus
    from sublet.ask import AskTarget, run
    from sublet.configuration.slo import report, report_in_force
    from sublet.terminal.given_file import read_given_text

    wanted = DOCUMENT.read(output)
    if (file is None) == (node is None) or (node is not None and labels):
        raise Refused("config slo: want a ConfigMap (--file, and --labels) or a node (--node)", reason="usage")
    if file is not None:
        found = report(read_given_text(file, what="ConfigMap"), file, labels)
        raise typer.Exit(_show_slo(found, wanted, settings=settings))

    async def work(bus: Bus, _where: AskTarget) -> int:
        return _show_slo(await report_in_force(bus, str(node)), wanted, settings=settings)

    run(work)


def _show_slo(found: "SloReport", wanted: "OutputFormat", *, settings: bool) -> int:
    """Print a report; the exit code."""
    from sublet.configuration.difference import as_text
    from sublet.exit_codes import OK, REFUSED

    if settings:
        typer.echo(as_text(found.settings()), nl=False)
        if "advisor" not in found.settings():
            typer.echo("# CPU suppression is off there; here the policy that is set goes on to hold", err=True)
        for line in found.unfollowed:
            typer.echo(f"# {line}", err=True)
    else:
        typer.echo(found.table() if wanted.is_table else document_text(found.document(), wanted))
    for line in found.lines:
        typer.echo(line, err=True)
    return REFUSED if found.read.problems else OK


def _valid(file: str) -> "tuple[str, Mapping[str, object]]":
    """The text of a file and what it says.

    Raises:
        Refused: it cannot be read, or a service would refuse it.
    """
    from services.central.core.config import MAX_TEXT_BYTES
    from sublet.terminal.given_file import read_given_text

    text = read_given_text(file, what="configuration file", max_bytes=MAX_TEXT_BYTES)
    return text, _valid_text(text, file)


def _valid_text(text: str, name: str) -> "Mapping[str, object]":
    import os

    from sublet.validation.findings import validate_config_text
    from sublet.validation.given import given_settings

    document, verdict = validate_config_text(text, name, given_settings(os.environ))
    verdict.require_valid()
    return document
