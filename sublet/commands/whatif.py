"""`sublet whatif`: ask one decision of the product what it would do."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shared.errors import Refused
from sublet.cluster.options import KubeconfigOption
from sublet.completion.names import complete_kind
from sublet.exit_codes import NO_SUCH_OBJECT, REFUSED
from sublet.terminal.formats import DOCUMENT, OutputFormat, document_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.whatif.decisions import DecisionKind


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(whatif)


def whatif(
    kind: Annotated[
        str,
        typer.Argument(
            autocompletion=complete_kind, help="The decision; its inputs are read from stdin as one JSON object."
        ),
    ] = "",
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='Read lines {"id", "kind", "inputs"} and print one line for each.')
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Name, area and meaning of every kind.")] = False,
    schema: Annotated[str, typer.Option("--schema", metavar="KIND", help="JSON Schemas of a kind.")] = "",
    node: Annotated[
        list[str] | None, typer.Option("--node", help="With nodes-lost: a node of the cluster; may be repeated.")
    ] = None,
    agents_ready: Annotated[
        bool, typer.Option("--agents-ready", help="With nodes-lost: their agents' pods stay ready, the bus is cut.")
    ] = False,
    nodes_stale: Annotated[
        bool, typer.Option("--nodes-stale", help="With nodes-lost: their kubelets are silent as well.")
    ] = False,
    output: Annotated[str, DOCUMENT.option] = "table",
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Ask a decision of the product what it would do. Typed inputs in, typed outputs out, nothing is touched.

    `sublet whatif nodes-lost --node NAME --node NAME ...` reads the cluster and says what central would do, and when,
    if these nodes fell silent now.
    """
    if sum(map(bool, (kind, jsonl, listing, schema))) != 1:
        raise typer.BadParameter("want exactly one of KIND, --jsonl, --list, --schema KIND")
    from sublet import whatif as door

    known = door.kinds()
    if node:
        if kind not in ("nodes-lost", "nodes_lost"):
            raise typer.BadParameter("--node is for nodes-lost: sublet whatif nodes-lost --node NAME")
        _tell_loss(known, kubeconfig, node, DOCUMENT.read(output), agents_ready=agents_ready, nodes_stale=nodes_stale)
        return
    if listing:
        _print(*door.listing(known))
        return
    if jsonl:
        for line in door.stream(known, sys.stdin.buffer):
            _print(line)
        return
    line, well = door.schema(known, schema) if schema else door.ask(known, kind, sys.stdin.buffer.read())
    _print(line)
    if not well:
        raise typer.Exit(REFUSED)


def _tell_loss(
    known: "Mapping[str, DecisionKind]", kubeconfig: Path | None, silent: list[str], wanted: OutputFormat, **more: bool
) -> None:
    from sublet import whatif as door
    from sublet.cluster.node_loss import read_question
    from sublet.cluster.options import ask_cluster
    from sublet.views.cluster.node_loss import loss_lines

    question = ask_cluster(kubeconfig, lambda kube: read_question(kube, list(dict.fromkeys(silent)), **more))
    told = door.answer(known, "nodes_lost", question)
    if "error" in told:
        raise Refused(f"{told['message']}: see sublet nodes", reason=NO_SUCH_OBJECT)
    _print(*(loss_lines(question, told) if wanted.is_table else (document_text(told, wanted),)))


def _print(*lines: str) -> None:
    """Each answer leaves at once: another program may wait for it before it asks again."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
