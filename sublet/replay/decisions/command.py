"""`sublet record --cluster`: the files, the bus and the API server of it."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from shared.adapters.clock import SystemClock
from shared.errors import Refused, Unavailable
from sublet.ask import NOT_THERE, AskTarget, run
from sublet.cluster.way import open_kube, require_way
from sublet.replay import progress
from sublet.replay.decisions.recorder import ClusterRecorder
from sublet.replay.decisions.recording import ClusterWriter
from sublet.replay.traces.recorder import RecordingEnd
from sublet.terminal.stderr import print_error

if TYPE_CHECKING:
    from shared.ports import Bus

MANAGER = "sublet-record"
"""Nothing is written; a client has to have a name."""
STANDARD_OUTPUT = Path("-")


def record_cluster(output: Path | None, max_bytes: int, for_s: float | None, kubeconfig: Path | None) -> NoReturn:
    """Record until Ctrl-C, and end the process."""
    way = require_way(kubeconfig)

    async def keep(bus: "Bus", where: AskTarget) -> int:
        from shared.adapters.kube.objects import KubeObjects

        del where
        clock, stop = SystemClock(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        path = output or Path(f"cluster-{clock.wall():%Y%m%d-%H%M%S}.jsonl.gz")
        kube = open_kube(way)
        line = progress.ProgressLine("cluster", sys.stderr, silence="is this where central runs?")
        with _opened(path) as out:
            writer = ClusterWriter(out, clock.wall(), max_bytes=max_bytes)
            recorder = ClusterRecorder(writer, clock)
            mirrors = recorder.mirrors(KubeObjects(kube, clock, manager=MANAGER))
            try:
                ending = await recorder.record(bus, mirrors, RecordingEnd(stop, for_s), line.show)
            finally:
                writer.close()
                await kube.close()
        line.end(f"{path}: {writer.frames} frames, {progress.size(writer.bytes)}; {progress.ENDINGS[ending]}")
        for kind, mirror in mirrors.items():
            if mirror.age_s is None:
                print_error(f"{kind}: not recorded: {mirror.why}")
        if recorder.refused:
            print_error(f"{recorder.refused} messages could not be read, and were left out")
        return 0 if writer.frames else NOT_THERE

    run(keep)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, which must be a new one, or standard output."""
    if path == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        return
    try:
        with path.open("xb") as out:
            yield out
    except FileExistsError:
        raise Refused(f"{path} exists: choose another name with -o", reason="exists") from None
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror or error}") from error
