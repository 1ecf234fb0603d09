"""`publish` gives central a new configuration: confirmed if it removes something, written atomically, and awaited."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from services.central.core.config import encode_config
from shared.adapters.files.replaced import replace_file
from shared.contracts.bus.subjects import CONFIG_BUCKET, GLOBAL_CONFIG_KEY
from shared.errors import Refused, Unavailable, Unfit
from shared.ports import Bus
from sublet.ask import AskTarget, ask
from sublet.config_file import own_config_file
from sublet.configuration.difference import Difference
from sublet.configuration.revisions import read_in_force
from sublet.exit_codes import FAILED, OK
from sublet.terminal.dry_run import dry
from sublet.terminal.stderr import print_error
from sublet.views.answer_shapes import well_shaped

PUBLISH_TIMEOUT_S = 10.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Wanted:
    """A valid configuration: its text as the file gets it, what it says, and what to call it."""

    text: str
    document: Mapping[str, Any]
    name: str
    yes: bool = False
    """Whether it may take away what is set without a question."""
    dry_run: bool = False
    """Whether nothing is to be written."""


async def publish(bus: Bus, where: AskTarget, wanted: Wanted) -> int:
    """Write the file that central reads, and wait until its revision is there; the exit code.

    A dry run ends where the file would be written, with what would change.

    Raises:
        Unavailable: central does not answer.
        Refused: nobody agreed to what it takes away, or central reads another file; nothing is written.
        Unfit: this user may not write the file.
    """
    value = encode_config(wanted.document)
    central, goal = await ask(bus, where.node, "central"), own_config_file()
    if central is None:
        raise Unavailable(f"central of {where.node} does not answer: see `sublet status`")
    refuse_other_file(goal, central)
    in_force = await read_in_force(bus)
    difference = Difference(in_force.document or {}, wanted.document)
    if wanted.dry_run:
        typer.echo(_rehearsed(difference, in_force.number, wanted, goal))
        return OK
    require_consent(difference, f"revision {in_force.number}", wanted)
    _put(goal, wanted.text)
    try:
        typer.echo(f"configuration revision {await _published(bus, value)} is published")
    except TimeoutError:
        print_error(f"{goal} is written, but central has not published it yet: see `sublet status`")
        return FAILED
    return OK


def _rehearsed(difference: Difference, in_force: int, wanted: Wanted, goal: Path) -> str:
    if difference.empty:
        return dry(f"{wanted.name} says what revision {in_force} says: nothing would change")
    changes = difference.text(f"revision {in_force}", wanted.name).rstrip("\n")
    asked = "after a question, " if difference.needs_consent and not wanted.yes else ""
    return f"{changes}\n{dry(f'{asked}{goal} would be written and published as a revision')}"


def require_consent(difference: Difference, in_force: str, wanted: Wanted) -> None:
    """Ask before anything is taken away; who has no terminal says `--yes`.

    Raises:
        Refused: nobody has agreed.
    """
    if wanted.yes or not difference.needs_consent:
        return
    lost = ", ".join(difference.lost_sections)
    what = f"removes the sections {lost}" if lost else "is empty"
    print(difference.text(in_force, wanted.name), file=sys.stderr)
    if not sys.stdin.isatty():
        raise Refused(f"{wanted.name} {what}: say --yes if that is meant; nothing is published", reason="no_consent")
    if not typer.confirm(f"{wanted.name} {what}. Publish it?", err=True):
        raise Refused("nothing is published", reason="no_consent")


def refuse_other_file(goal: Path, central: Mapping[str, Any]) -> None:
    """What central says about its file is compared with what is meant here, and never opened.

    Raises:
        Refused: it reads another one.
    """
    told = (well_shaped("central", central).get("config") or {}).get("file")
    if isinstance(told, str) and told != str(goal):
        raise Refused(
            f"these settings mean the configuration file {goal}, central says that it reads {told}: run this where "
            "central runs, with its settings (SUBLET_STATE_DIR, SUBLET_CENTRAL__CONFIG_FILE); nothing is written",
            reason="another_file",
        )


def _put(goal: Path, text: str) -> None:
    try:
        replace_file(goal, text.encode(), what="configuration", mode=0o640)
    except Unavailable as error:
        raise Unfit(f"{error}; try with sudo") from error


async def _published(bus: Bus, value: bytes) -> int:
    async with asyncio.timeout(PUBLISH_TIMEOUT_S):
        while True:
            entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
            if entry is not None and entry.value == value:
                return entry.revision
            await asyncio.sleep(POLL_S)
