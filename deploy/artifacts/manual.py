"""Manual pages, from the parser of the command line: one of the whole, and one of each command."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import typer

from shared.core.scan import modules_in
from sublet import cli, commands

PROGRAM = "sublet"
HELP_OPTION = ("-h, --help", "Show what the command does and which options it has.")
FILES = {
    "/var/lib/sublet": "State of root's Sublet: ledger of evictions, streams, logs. Another folder: SUBLET_STATE_DIR.",
    "~/.local/state/sublet": "The same of any other user.",
}


def parser() -> Any:
    """The command line as it parses what is typed: a group of commands of the library's own type."""
    return typer.main.get_command(cli.build(modules_in(commands)))


def pages(version: str, epoch_s: int) -> dict[str, str]:
    """Every page by the name of its file."""
    group = parser()
    top = group.make_context(PROGRAM, [], resilient_parsing=True)
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    made = {PROGRAM: _overview(group, top, shown)}
    made |= {f"{PROGRAM}-{name}": _page(name, command, top) for name, command in shown.items()}
    day = datetime.fromtimestamp(epoch_s, UTC).date().isoformat()
    return {
        f"{name}.1": f'.TH {name.upper()} 1 "{day}" "Sublet {version}" "Sublet"\n{body}' for name, body in made.items()
    }


def _overview(group: Any, top: Any, shown: dict[str, Any]) -> str:
    lines = [*_name(PROGRAM, group.help), *_section("SYNOPSIS"), f"\\fB{PROGRAM}\\fR [OPTIONS] COMMAND [ARGUMENTS]"]
    lines += [*_section("DESCRIPTION"), *_text(group.help), *_section("OPTIONS"), *_options(group, top)]
    lines += _section("COMMANDS")
    for name, command in shown.items():
        lines += [".TP", f"\\fB{_plain(PROGRAM)}\\-{_plain(name)}\\fR(1)", *_text(_first(command.help))]
    lines += _section("FILES")
    for path, about in FILES.items():
        lines += [".TP", _plain(path), *_text(about)]
    return "\n".join(lines) + "\n"


def _page(name: str, command: Any, top: Any) -> str:
    lines = [*_name(f"{PROGRAM}-{name}", command.help), *_section("SYNOPSIS")]
    below = list(_below(name, command, top))
    for path, part, context in below:
        lines += [f"\\fB{PROGRAM} {path}\\fR {_plain(' '.join(part.collect_usage_pieces(context)))}", ".br"]
    lines += [*_section("DESCRIPTION"), *_text(command.help)]
    for path, part, context in below:
        if part is not command:
            lines += [f'.SH "{PROGRAM} {path}"', *_text(part.help)]
        if part.params or part is command:
            lines += [*(_section("OPTIONS") if part is command else [".PP"]), *_options(part, context)]
    lines += [*_section("SEE ALSO"), f"\\fB{PROGRAM}\\fR(1)"]
    return "\n".join(lines) + "\n"


def _below(path: str, command: Any, parent: Any) -> Iterator[tuple[str, Any, Any]]:
    """The command itself, or each command of a group, with its words and its context."""
    context = command.make_context(path.rsplit(" ", 1)[-1], [], parent=parent, resilient_parsing=True)
    if not hasattr(command, "commands"):
        yield path, command, context
        return
    for name, part in command.commands.items():
        if not part.hidden:
            yield from _below(f"{path} {name}", part, context)


def _name(name: str, told: str) -> list[str]:
    return [".SH NAME", f"{_plain(name)} \\- {_plain(_first(told).rstrip('.'))}"]


def _section(title: str) -> list[str]:
    return [f".SH {title}" if " " not in title else f'.SH "{title}"']


def _options(command: Any, context: Any) -> Iterator[str]:
    records = [record for parameter in command.params if (record := parameter.get_help_record(context))]
    for names, about in (*records, HELP_OPTION):
        yield from (".TP", f"\\fB{_plain(names)}\\fR", *_text(about))


def _first(told: str) -> str:
    """The first sentence."""
    return re.split(r"(?<=\.)\s|\n\n", told.strip())[0].replace("\n", " ")


def _text(told: str) -> Iterator[str]:
    """Paragraphs; one that begins with a backspace is printed as it stands, as in the help."""
    for position, paragraph in enumerate(re.split(r"\n\n+", told.strip("\n"))):
        literal = paragraph.startswith("\b")
        if position:
            yield ".PP"
        if literal:
            yield ".nf"
        yield from (_plain(line) for line in paragraph.removeprefix("\b").strip("\n").splitlines())
        if literal:
            yield ".fi"


def _plain(text: str) -> str:
    """Text in which nothing is taken for an order to the formatter."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("~", "\\(ti")
    escaped = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", escaped.replace("^", "\\(ha"))
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
