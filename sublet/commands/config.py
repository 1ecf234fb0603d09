"""`sublet config`: the configuration that central hands to every node."""

from pathlib import Path
from typing import Annotated

import typer

PUBLISH_TIMEOUT_S = 10.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Show or change the configuration of all nodes.", no_args_is_help=True)
    group.command()(show)
    group.command(name="apply")(apply)
    app.add_typer(group, name="config")


def show() -> None:
    """Print the configuration in force and its revision."""
    import yaml

    from shared.contracts.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
    from shared.ports import Bus
    from sublet.ask import Target, ask, run

    async def work(bus: Bus, where: Target) -> int:
        entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
        central = (await ask(bus, where.node, "central") or {}).get("config", {})
        if entry is None or entry.value is None:
            typer.echo("# nothing is set: every service uses its own settings")
        else:
            typer.echo(f"# revision {entry.revision}")
            typer.echo(yaml.safe_dump(yaml.safe_load(entry.value), sort_keys=True), nl=False)
        if central.get("refused"):
            typer.echo(f"# refused since: {central['refused']}", err=True)
        return 0

    run(work)


def apply(file: Annotated[Path, typer.Option("--file", "-f", help="YAML: {section: {setting: value}}")]) -> None:
    """Check a configuration, give it to central, and wait until it is published."""
    import asyncio

    from services.central.config import encode_config, read_config
    from shared.contracts.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
    from shared.errors import Unavailable
    from shared.ports import Bus
    from shared.settings import SECTIONS
    from sublet.ask import Target, ask, run

    async def published(bus: Bus, value: bytes) -> int:
        async with asyncio.timeout(PUBLISH_TIMEOUT_S):
            while True:
                entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
                if entry is not None and entry.value == value:
                    return entry.revision
                await asyncio.sleep(0.1)

    async def work(bus: Bus, where: Target) -> int:
        text = _text(file)
        value = encode_config(read_config(text, known=SECTIONS))
        central = await ask(bus, where.node, "central")
        if central is None:
            raise Unavailable(f"central of {where.node} does not answer: see `sublet status`")
        goal = Path(central["config"]["file"])
        _put(goal, text)
        try:
            typer.echo(f"configuration revision {await published(bus, value)} is published")
        except TimeoutError:
            typer.echo(f"{goal} is written, but central has not published it yet: see `sublet status`", err=True)
            return 1
        return 0

    run(work)


def _text(file: Path) -> str:
    from shared.errors import BadConfig

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"configuration file {file}: {error}", reason="unreadable") from error


def _put(goal: Path, text: str) -> None:
    """Replace the file that central watches, whole."""
    from shared.errors import Unfit

    fresh = goal.with_name(f".{goal.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(goal)
    except OSError as error:
        raise Unfit(f"cannot write {goal}: {error.strerror}; try with sudo") from error
