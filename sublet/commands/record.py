"""`sublet record`: this node's samples into a file, for `sublet replay`."""

from pathlib import Path
from typing import Annotated

import typer

from sublet.cluster.options import KubeconfigOption
from sublet.replay.options import finite

LEAST_FRAMES = 2
"""A single sample has no duration."""
FOR = typer.Option("--for", min=0.1, callback=finite, metavar="SECONDS", help="Stop after so long.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(record)


def record(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; without it NODE-DATE.jsonl.gz in this folder.")
    ] = None,
    max_mb: Annotated[
        float, typer.Option(min=0.001, max=1e6, callback=finite, help="Stop when the file is that large.")
    ] = 100.0,
    for_s: Annotated[float | None, FOR] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="What central sees and decides; `-o -` is standard output.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Record this node's samples until Ctrl-C, for `sublet replay`.

    A recorder that is killed loses the last 5 s; what it wrote before can be replayed. With --cluster, where central
    runs: the objects, the messages of nodes and the decisions of the cluster, to be decided anew by `sublet replay`.
    """
    if cluster:
        from sublet.replay.decisions.command import record_cluster

        record_cluster(output, int(max_mb * 1e6), for_s, kubeconfig)
    import asyncio
    import signal
    import sys

    from shared.adapters.clock import SystemClock
    from shared.contracts.sample import NodeSample
    from shared.errors import Refused, Unavailable
    from shared.ports import Bus
    from shared.wire import Wire
    from sublet.ask import NOT_THERE, AskTarget, ask_all, run
    from sublet.exit_codes import FAILED
    from sublet.replay import progress
    from sublet.replay.traces import recorder
    from sublet.replay.traces.recording import Writer
    from sublet.terminal.stderr import print_error
    from sublet.views.facts import read

    async def keep(bus: Bus, where: AskTarget) -> int:
        clock, stop = SystemClock(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        topology = read(where.node, await ask_all(bus, where.node, ("qrm",))).topology
        if topology is None:
            raise Unavailable(f"qrm of {where.node} does not say which CPUs there are: see `sublet status`")
        samples = await Wire(bus, clock, node=where.node, service="record").newest(NodeSample)
        path = output or Path(f"{where.node}-{clock.wall():%Y%m%d-%H%M%S}.jsonl.gz")
        line = progress.ProgressLine(where.node, sys.stderr)
        try:
            with path.open("xb") as out:
                writer = Writer(out, where.node, topology, max_bytes=int(max_mb * 1e6))
                try:
                    ending = await recorder.record(
                        samples, writer, clock, recorder.RecordingEnd(stop, for_s), line.show
                    )
                finally:
                    writer.close()
        except FileExistsError:
            raise Refused(f"{path} exists: choose another name with -o", reason="exists") from None
        except OSError as error:
            raise Unavailable(f"{path}: {error.strerror or error}") from error
        line.end(f"{path}: {writer.frames} frames, {progress.size(writer.bytes)}; {progress.ENDINGS[ending]}")
        if writer.frames >= LEAST_FRAMES:
            return 0
        print_error(f"{path}: {writer.frames} frames are too few to be replayed; record for longer, as with --for 60")
        return FAILED if writer.frames else NOT_THERE

    run(keep)
