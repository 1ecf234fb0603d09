"""The table of commands: what each prints, whether it can be watched, and what it changes; the parser must agree."""

from dataclasses import dataclass
from typing import Any

import pytest
from typer.core import TyperCommand
from wrong_inputs import application, leaf_commands

OBJECTS, PLANS, DOCUMENT, EVENTS = (
    "table|wide|name|json|yaml", "table|wide|json|yaml", "table|json|yaml", "table|wide|name|json|yaml|cloudevents",
)  # fmt: skip
OWN_SCREEN, TEXT, FILE = "its own screen", "text", "a file"
DRY, APPLY, READS = "--dry-run", "--apply/--dry-run", ""
WRITES_WHAT_IT_IS_TOLD = "writes only the file that is named"
OF_THE_AGENT = "run by the agent's pod, not typed"


@dataclass(frozen=True)
class Properties:
    """What a command has: its formats or why none, the option that goes on looking, what protects from a slip."""

    prints: str
    goes_on: str = ""
    changes: str = READS


TABLE = {
    "up": Properties(TEXT, changes=DRY),
    "down": Properties(TEXT, changes=DRY),
    "node": Properties(TEXT, changes=OF_THE_AGENT),
    "leave": Properties(TEXT, changes=OF_THE_AGENT),
    "run": Properties(TEXT, changes=DRY),
    "apply": Properties(TEXT, changes=DRY),
    "delete": Properties(TEXT, changes=DRY),
    "pause": Properties(DOCUMENT, changes=DRY),
    "resume": Properties(DOCUMENT, changes=DRY),
    "uninstall": Properties(TEXT, changes=DRY),
    "bridge": Properties(TEXT, changes=DRY),
    "get": Properties(OBJECTS, "--watch"),
    "status": Properties(OBJECTS, "--watch"),
    "nodes": Properties(OBJECTS, "--watch"),
    "describe": Properties(TEXT),
    "logs": Properties(TEXT, "--follow"),
    "top": Properties(OWN_SCREEN),
    "events": Properties(EVENTS, "--follow"),
    "explain": Properties(PLANS),
    "audit": Properties(DOCUMENT),
    "doctor": Properties(DOCUMENT),
    "record": Properties(FILE, changes=WRITES_WHAT_IT_IS_TOLD),
    "replay": Properties(DOCUMENT, changes=WRITES_WHAT_IT_IS_TOLD),
    "recommend": Properties(PLANS),
    "train": Properties(FILE, changes=WRITES_WHAT_IT_IS_TOLD),
    "whatif": Properties(DOCUMENT),
    "sim": Properties(OBJECTS),
    "demo": Properties(TEXT, changes=DRY),
    "bench fleet": Properties(DOCUMENT),
    "config show": Properties(DOCUMENT),
    "config status": Properties(DOCUMENT, "--watch"),
    "config validate": Properties(DOCUMENT),
    "config diff": Properties(DOCUMENT),
    "config apply": Properties(TEXT, changes=DRY),
    "config history": Properties(OBJECTS),
    "config rollback": Properties(TEXT, changes=DRY),
    "config explain": Properties(DOCUMENT),
    "config schema": Properties(TEXT),
    "config slo": Properties(DOCUMENT),
    "consumers add": Properties(DOCUMENT, changes=DRY),
    "consumers list": Properties(OBJECTS, "--watch"),
    "consumers rotate": Properties(DOCUMENT, changes=DRY),
    "consumers remove": Properties(DOCUMENT, changes=DRY),
    "consumers dead-letters": Properties(OBJECTS),
    "policy new": Properties(TEXT, changes=DRY),
    "policy test": Properties(DOCUMENT),
    "plugin new": Properties(TEXT, changes=DRY),
    "plugin test": Properties(DOCUMENT),
} | {
    f"migrate {system} {step}": properties
    for system in ("koordinator", "katalyst")
    for step, properties in {
        "plan": Properties(PLANS, changes=WRITES_WHAT_IT_IS_TOLD),
        "install": Properties(DOCUMENT),
        "compare": Properties(DOCUMENT),
        "takeover": Properties(TEXT, changes=APPLY),
        "back": Properties(TEXT, changes=APPLY),
    }.items()
    if (system, step) != ("katalyst", "compare")
}
"""Every command. A new one has its row before it is merged."""


COMMANDS = leaf_commands(application())


def options(command: TyperCommand) -> dict[str, Any]:
    return {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}


def test_every_command_has_a_row() -> None:
    assert COMMANDS.keys() == TABLE.keys()


@pytest.mark.parametrize("name", TABLE)
def test_a_command_prints_in_the_forms_of_its_row(name: str) -> None:
    found = options(COMMANDS[name]).get("--output")
    metavar = getattr(found, "metavar", "") or ""
    printed = metavar.removesuffix("|jsonpath=TEMPLATE") if metavar.endswith("TEMPLATE") else None
    wanted = TABLE[name].prints
    assert printed == (wanted if "|" in wanted else None)


@pytest.mark.parametrize("name", TABLE)
def test_what_shows_a_state_can_be_watched(name: str) -> None:
    assert ({"--watch", "--follow"} & options(COMMANDS[name]).keys()) == ({TABLE[name].goes_on} - {""})


@pytest.mark.parametrize("name", TABLE)
def test_what_changes_something_has_a_dry_run(name: str) -> None:
    has = {"--dry-run", "--apply"} & options(COMMANDS[name]).keys()
    wanted = TABLE[name].changes
    assert has == ({"--dry-run", "--apply"} if wanted == APPLY else {"--dry-run"} if wanted == DRY else set())


@pytest.mark.parametrize("name", TABLE)
def test_every_command_and_option_says_what_it_is(name: str) -> None:
    command = COMMANDS[name]
    assert (command.help or "").strip()
    # `metavar` alone speaks for itself: NAME, FILE.
    silent = [one for one in command.params if not getattr(one, "help", "") and not getattr(one, "metavar", "")]
    assert [one.name for one in silent] == []
