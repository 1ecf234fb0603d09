"""The command `sublet`: collects the commands of `sublet/commands`, one file each, and turns errors into one line."""

import os
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import ModuleType
from typing import Annotated

import typer
from typer.exceptions import TyperException

from shared.build import BUILD
from shared.core.scan import modules_in
from shared.errors import SubletError
from sublet import commands
from sublet.exit_codes import FAILED, INTERNAL, INTERRUPTED, REFUSED, code_of
from sublet.invocation import OWN, PLUGIN, program_name
from sublet.terminal.stderr import print_error

# As a user needs them: start, work with pods, look, think ahead, run parts. What is not named here comes last.
ORDER = ("up", "run", "apply", "get", "describe", "logs", "delete",
         "status", "nodes", "top", "events", "explain", "audit", "pause",
         "doctor", "migrate", "consumers", "bridge", "config", "record", "replay", "recommend", "train", "policy",
         "plugin", "whatif", "sim", "demo", "bench")  # fmt: skip
OF_THIS_HOST = ("up", "demo", "run", "apply", "describe", "logs", "delete", "leave", "bench")
"""Commands that a plugin of kubectl would have nothing for: they work on the machine on which they run."""

HELP = """Let batch work use the CPU and memory that online services leave idle on this host.

\b
    sudo sublet up                                 start; Ctrl-C stops
    sudo sublet run --qos reclaimed -- COMMAND     batch work on what is idle
    sublet status                                  what Sublet does now

Settings come from SUBLET_* variables and the YAML file named by SUBLET_CONFIG.

\b
Exit codes: 0 done, 1 the answer is no (not found, not ready), 2 the request
cannot be used, 3 no server or service answers, 70 a fault of Sublet itself;
`sublet run` passes its command's exit code on (docs/exit-codes.md).
"""

PLUGIN_HELP = """Let batch work use the CPU and memory that online services leave idle on a cluster's nodes.

\b
    kubectl sublet doctor                          is the cluster fit, is all there
    kubectl sublet status                          what each node offers, in one line
    kubectl sublet get node NAME                   one node's object
    kubectl sublet explain pod/NAME                why it is where it is

The cluster is that of --kubeconfig, KUBECONFIG or ~/.kube/config. explain asks
in Sublet's pods, by kubectl exec. Services are asked over the bus: those of a
node (top) in its agent's pod, events and audit through the hub (docs/kubernetes.md, "Look from outside").
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
    _debug: Annotated[
        bool, typer.Option("--debug", help="After a fault of Sublet itself, write its trace to a file.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print version, revision and Python."),
    ] = False,
) -> None:
    """Keeps the program a group of commands, however few there are."""


def main() -> None:
    """Entry point; whatever ends a command becomes one line on standard error, and a code of the table."""
    program = program_name(sys.argv[0])
    raise SystemExit(call(build(modules_in(commands), program), sys.argv[1:], program))


def call(app: typer.Typer, arguments: Sequence[str], program: str = OWN) -> int:
    """Run a command; returns its exit code, with the reason on standard error where it is not 0."""
    try:
        code = typer.main.get_command(app).main(args=list(arguments), prog_name=program, standalone_mode=False)
    except SubletError as error:
        print_error(error)
        return code_of(error)
    except TyperException as error:
        return _refuse_usage(error, program)
    except (KeyboardInterrupt, EOFError, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        sys.stderr.close()
        return FAILED
    except OSError as error:
        from sublet.terminal.given_file import os_words

        print_error(os_words(error))
        return FAILED
    except Exception as error:  # noqa: BLE001 - nobody is shown a trace that he cannot use
        _report_fault(error, debug="--debug" in takewhile(lambda word: word.startswith("-"), arguments))
        return INTERNAL
    return code if isinstance(code, int) else 0


def _refuse_usage(error: TyperException, program: str) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without a word: its help is the answer
        print(error.format_message(), file=sys.stderr)
    else:
        from sublet.terminal.usage_errors import usage_message

        print_error(usage_message(error, program))
    return REFUSED


def _report_fault(error: Exception, *, debug: bool) -> None:
    """Name a fault of Sublet itself and what to report; the trace is written only where it was asked for."""
    fault = f"a fault of Sublet itself ({type(error).__name__}: {error})"
    if not debug:
        print_error(f"{fault}; please report it with the trace that the same command writes after: sublet --debug")
        return
    handle, path = tempfile.mkstemp(prefix="sublet-trace-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        traceback.print_exception(error, file=file)
    print_error(f"{fault}; its trace is in {path}: please report it with that file")
