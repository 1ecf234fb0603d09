"""The command `sublet`: gathers the commands of `sublet/commands`, one file each, and turns errors into one line."""

import sys
from collections.abc import Mapping
from types import ModuleType

import typer

from shared.core.scan import modules_in
from shared.errors import Refused, SubletError
from sublet import commands
from sublet.exit_codes import FAILED, REFUSED

# As a user needs them: start, work with pods, look, think ahead, run parts. What is not named here comes last.
ORDER = ("up", "run", "apply", "get", "logs", "delete", "status", "top", "events", "explain", "audit", "pause",
         "consumers", "bridge", "config", "record", "replay", "train", "whatif", "sim")  # fmt: skip

HELP = """Let batch work use the CPU and memory that online services leave idle on this host.

\b
    sudo sublet up                                 start; Ctrl-C stops
    sudo sublet run --qos reclaimed -- COMMAND     batch work on what is idle
    sublet status                                  what Sublet does now

Settings come from SUBLET_* variables and the YAML file named by SUBLET_CONFIG.

\b
Exit codes: 0 done, 1 something needed is not there, 2 the request cannot be
used; `sublet run` passes its command's exit code on.
"""


def build(found: Mapping[str, ModuleType]) -> typer.Typer:
    """The application with these modules' commands; each module has `register(app)`."""
    app = typer.Typer(
        help=HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    rank = {name: position for position, name in enumerate(ORDER)}
    for name in sorted(found, key=lambda name: (rank.get(name, len(rank)), name)):
        found[name].register(app)
    return app


def _top() -> None:
    """Keeps the program a group of commands, however few there are."""


def main() -> None:
    """Entry point; every error that is raised on purpose becomes one line on standard error."""
    try:
        build(modules_in(commands))()
    except SubletError as error:
        print(f"sublet: {error}", file=sys.stderr)
        raise SystemExit(REFUSED if isinstance(error, Refused) else FAILED) from None
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stderr.close()
        raise SystemExit(FAILED) from None
