"""The command `sublet`: gathers the commands of `sublet/commands`, one file each, and turns errors into one line."""

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Annotated

import typer

from shared.build import BUILD
from shared.core.scan import modules_in
from shared.errors import Refused, SubletError
from sublet import commands
from sublet.exit_codes import FAILED, REFUSED
from sublet.invocation import OWN, PLUGIN, program_name

# As a user needs them: start, work with pods, look, think ahead, run parts. What is not named here comes last.
ORDER = ("up", "run", "apply", "get", "logs", "delete", "status", "top", "events", "explain", "audit", "pause",
         "doctor", "consumers", "bridge", "config", "record", "replay", "train", "whatif", "sim")  # fmt: skip
OF_THIS_HOST = ("up", "run", "apply", "logs", "delete", "pause", "leave")
"""Commands that a plugin of kubectl would have nothing for: they work on the machine on which they run."""

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

PLUGIN_HELP = """Let batch work use the CPU and memory that online services leave idle on a cluster's nodes.

\b
    kubectl sublet doctor                          is the cluster fit, is all there
    kubectl sublet status                          what each node offers, in one line
    kubectl sublet get node NAME                   one node's object

The cluster is that of --kubeconfig, KUBECONFIG or ~/.kube/config. Services are
asked over the bus: those of a node (top, explain) in its agent's pod, events
and audit through the hub (docs/kubernetes.md, "Look from outside").
"""


def build(found: Mapping[str, ModuleType], program: str = OWN) -> typer.Typer:
    """The application with these modules' commands, as it is called; each module has `register(app)`."""
    app = typer.Typer(
        help=PLUGIN_HELP if program == PLUGIN else HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    rank = {name: position for position, name in enumerate(ORDER)}
    hidden = OF_THIS_HOST if program == PLUGIN else ()
    for name in sorted(found.keys() - set(hidden), key=lambda name: (rank.get(name, len(rank)), name)):
        found[name].register(app)
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sublet {BUILD.words()}")
        raise typer.Exit


def _top(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print version, revision and Python."),
    ] = False,
) -> None:
    """Keeps the program a group of commands, however few there are."""


def main() -> None:
    """Entry point; every error that is raised on purpose becomes one line on standard error."""
    program = program_name(sys.argv[0])
    try:
        build(modules_in(commands), program)(prog_name=program)
    except SubletError as error:
        print(f"{program}: {error}", file=sys.stderr)
        raise SystemExit(REFUSED if isinstance(error, Refused) else FAILED) from None
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stderr.close()
        raise SystemExit(FAILED) from None
