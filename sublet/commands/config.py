"""`sublet config`: the configuration that central hands to every node."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

PUBLISH_TIMEOUT_S = 10.0

Output = Annotated[Literal["text", "json"], typer.Option("--output", "-o", help="How to print it.")]
Document = Annotated[str, typer.Option("--file", "-f", help="YAML: {section: {setting: value}}")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Show or change the configuration of all nodes.", no_args_is_help=True)
    group.command()(show)
    group.command()(validate)
    group.command(name="apply")(apply)
    app.add_typer(group, name="config")


def show() -> None:
    """Print the configuration in force and its revision."""
    import yaml

    from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
    from shared.ports import Bus
    from sublet.ask import AskTarget, ask, read_answer, run
    from sublet.views.answer_shapes import well_shaped

    async def work(bus: Bus, where: AskTarget) -> int:
        entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
        central = well_shaped("central", await ask(bus, where.node, "central") or {}).get("config") or {}
        if entry is None or entry.value is None:
            typer.echo("# nothing is set: every service uses its own settings")
        else:
            typer.echo(f"# revision {entry.revision}")
            kept = read_answer(entry.value)
            text = "# it cannot be read\n" if kept is None else yaml.safe_dump(kept, sort_keys=True)
            typer.echo(text, nl=False)
        if central.get("refused"):
            typer.echo(f"# refused since: {central['refused']}", err=True)
        return 0

    run(work)


def validate(
    file: Annotated[
        list[str] | None, typer.Option("--file", "-f", help="YAML: {section: {setting: value}}; several are checked.")
    ] = None,
    output: Output = "text",
) -> None:
    """Check configurations, and the settings below them (SUBLET_* and SUBLET_CONFIG), as the services do; no Sublet
    has to run. All that is wrong is said at once; the exit code is 2 then, and 0 where nothing is.
    """
    import os

    from sublet.validation.findings import validate_config, validate_settings
    from sublet.validation.given import given_settings
    from sublet.validation.printing import print_verdicts

    settings = given_settings(os.environ)
    verdicts = {"settings": validate_settings(settings)}
    if not verdicts["settings"].findings:
        verdicts |= {one: validate_config(one, settings)[1] for one in file or ()}
    raise SystemExit(print_verdicts(verdicts, output))


def apply(file: Document) -> None:
    """Check a configuration, give it to central, and wait until it is published.

    It is written to the file that central reads by this command's own settings, or by those of `sublet up` here.
    """
    import asyncio
    import os

    from services.central.core.config import MAX_TEXT_BYTES, encode_config
    from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
    from shared.errors import Unavailable
    from shared.ports import Bus
    from sublet.ask import AskTarget, ask, run
    from sublet.config_file import own_config_file
    from sublet.terminal.given_file import read_given_text
    from sublet.validation.findings import validate_config_text
    from sublet.validation.given import given_settings

    text = read_given_text(file, what="configuration file", max_bytes=MAX_TEXT_BYTES)
    document, verdict = validate_config_text(text, file, given_settings(os.environ))
    verdict.require_valid()

    async def published(bus: Bus, value: bytes) -> int:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            while True:
                entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
                if entry is not None and entry.value == value:
                    return entry.revision
                await asyncio.sleep(0.1)

    async def work(bus: Bus, where: AskTarget) -> int:
        value = encode_config(document)
        central, goal = await ask(bus, where.node, "central"), own_config_file()
        if central is None:
            raise Unavailable(f"central of {where.node} does not answer: see `sublet status`")
        _refuse_other_file(goal, central)
        _put(goal, text)
        try:
            typer.echo(f"configuration revision {await published(bus, value)} is published")
        except TimeoutError:
            typer.echo(f"{goal} is written, but central has not published it yet: see `sublet status`", err=True)
            return 1
        return 0

    run(work)


def _refuse_other_file(goal: Path, central: "Mapping[str, Any]") -> None:
    """What central says about its file is compared with what is meant here, and never opened.

    Raises:
        Refused: it reads another one.
    """
    from shared.errors import Refused
    from sublet.views.answer_shapes import well_shaped

    told = (well_shaped("central", central).get("config") or {}).get("file")
    if isinstance(told, str) and told != str(goal):
        raise Refused(
            f"these settings mean the configuration file {goal}, central says that it reads {told}: run this where "
            "central runs, with its settings (SUBLET_STATE_DIR, SUBLET_CENTRAL__CONFIG_FILE); nothing is written",
            reason="another_file",
        )


def _put(goal: Path, text: str) -> None:
    """Replace the file that central watches, whole."""
    from shared.adapters.files.replaced import replace_file
    from shared.errors import Unavailable, Unfit

    try:
        replace_file(goal, text.encode(), what="configuration", mode=0o640)
    except Unavailable as error:
        raise Unfit(f"{error}; try with sudo") from error
