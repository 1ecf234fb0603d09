"""`sublet recommend`: what the workloads of recordings should have asked for."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.replay.options import finite
from sublet.terminal.formats import PLANS, document_text

FILES = typer.Argument(metavar="RECORDING...", help="Files of `sublet record`; several: of nodes at the same time.")
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
    """Say what each workload of a recording should ask for, as a ResourceRecommend would, against what it asks for.

    -o wide adds what its status would have said over time, and how often more was used meanwhile. The same recording
    gives the same output, byte for byte.
    """
    from contextlib import ExitStack

    from shared.errors import Refused
    from shared.text_file import os_reason
    from sublet.replay import progress
    from sublet.replay.requests import report
    from sublet.replay.requests.run import replay_requests
    from sublet.replay.requests.watched import RequestRules
    from sublet.replay.traces.frames import Faults
    from sublet.replay.traces.reading import read_recording
    from sublet.terminal.stderr import print_error

    wanted, faults = PLANS.read(output), Faults()
    with ExitStack() as stack:
        traces = []
        for path in files:
            try:
                traces.append(read_recording(path.name, stack.enter_context(path.open("rb"))))
            except OSError as error:
                raise Refused(f"{path}: {os_reason(error)}", reason="unreadable") from error
        replay = replay_requests(traces, RequestRules(buffer, min_history))
        for trace in traces:
            faults.add(trace.faults)
    for line in progress.faults(faults):
        print_error(line)
    if replay.frames == 0:
        raise Refused("no frame can be used", reason="malformed")
    found = report.document(replay, [path.name for path in files], faults)
    typer.echo(report.table(found, wide=wanted.kind == "wide") if wanted.is_table else document_text(found, wanted))
