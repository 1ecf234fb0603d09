"""`sublet recommend`: what the workloads of recordings should have asked for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sublet.replay.options import finite
from sublet.terminal.formats import PLANS, document_text

if TYPE_CHECKING:
    from sublet.replay.requests.run import RequestsReplay
    from sublet.replay.requests.watched import RequestRules
    from sublet.replay.traces.frames import Faults

FILES = typer.Argument(
    metavar="RECORDING...", help="Files of `sublet record`; several: of nodes at the same time; one of a cluster alone."
)
MOST_HISTORY_S = 7 * 86_400


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(recommend)


def recommend(
    files: Annotated[list[Path], FILES],
    buffer: Annotated[int, typer.Option(min=0, max=100, metavar="PERCENT", help="Added to what was used.")] = 30,
    min_history: Annotated[
        float,
        typer.Option(
            min=0, max=MOST_HISTORY_S, callback=finite, metavar="SECONDS", help="Before it a status has no figures."
        ),
    ] = 86_400.0,
    output: Annotated[str, PLANS.option] = "table",
) -> None:
    """Say what each workload of a recording should ask for. As a ResourceRecommend would, against what it asks for.

    -o wide adds what its status would have said over time, and how often more was used meanwhile. The same recording
    gives the same output, byte for byte.
    """
    from shared.errors import Refused
    from sublet.replay import progress
    from sublet.replay.requests import report
    from sublet.replay.requests.watched import RequestRules
    from sublet.terminal.stderr import print_error

    wanted, rules = PLANS.read(output), RequestRules(buffer, min_history)
    replay, faults = _replayed(files, rules)
    for line in progress.faults(faults):
        print_error(line)
    if replay.frames == 0:
        raise Refused("no frame can be used", reason="malformed")
    found = report.document(replay, [path.name for path in files], faults)
    typer.echo(report.table(found, wide=wanted.kind == "wide") if wanted.is_table else document_text(found, wanted))


def _replayed(files: list[Path], rules: "RequestRules") -> "tuple[RequestsReplay, Faults]":
    """What becomes known of the recordings of nodes, or of the one of a cluster."""
    from contextlib import ExitStack

    from shared.errors import BadConfig, Refused
    from shared.text_file import os_reason
    from sublet.replay.decisions.reading import is_cluster_recording, read_cluster_recording
    from sublet.replay.requests.run import replay_cluster_requests, replay_requests
    from sublet.replay.traces.frames import Faults
    from sublet.replay.traces.reading import read_recording

    with ExitStack() as stack:
        opened = []
        for path in files:
            try:
                opened.append((path.name, stack.enter_context(path.open("rb"))))
                with path.open("rb") as head:
                    of_cluster = is_cluster_recording(head)
            except OSError as error:
                raise Refused(f"{path}: {os_reason(error)}", reason="unreadable") from error
            if of_cluster and len(files) > 1:
                raise BadConfig("recommend: a recording of a cluster stands alone; name one FILE", reason="invalid")
            if of_cluster:
                recording = read_cluster_recording(*opened[0])
                return replay_cluster_requests(recording, rules), recording.faults
        traces, faults = [read_recording(*one) for one in opened], Faults()
        replay = replay_requests(traces, rules)
        for trace in traces:
            faults.add(trace.faults)
        return replay, faults
