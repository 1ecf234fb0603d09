"""Reading a container's log, also while it grows."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from shared.adapters.local.pods import LocalPods
from shared.adapters.local.stored_pod import StoredPod
from shared.errors import Refused

_POLL_S = 0.1
_PIECE_BYTES = 1 << 16


def log_of(stored: StoredPod, container: str) -> Path:
    """The log file of a container; of the only one where none is named.

    Raises:
        Refused: no such container, none named among several, or the pod writes to its terminal.
    """
    pod, names = stored.record.pod, [run.name for run in stored.record.runs]
    if not container and len(names) != 1:
        raise Refused(f"pod {pod.key} has containers {', '.join(names)}: choose one with -c", reason="ambiguous")
    chosen = container or names[0]
    if chosen not in names:
        raise Refused(f"pod {pod.key}: no container {chosen!r}; it has {', '.join(names)}", reason="not_found")
    path = stored.folder.log(chosen)
    if not path.exists():
        raise Refused(f"pod {pod.key}: no log, it runs in the foreground of a terminal", reason="not_found")
    return path


def read_on(pods: LocalPods, uid: str, path: Path, *, follow: bool, tail_lines: int | None = None) -> Iterator[bytes]:
    """The log piece by piece, or its last lines; with `follow` until the pod has finished or is gone."""
    with path.open("rb") as file:
        if tail_lines is not None:
            file.seek(_tail_start(file, tail_lines))
        while True:
            stored = pods.get(uid)
            over = not follow or stored is None or stored.status.finished
            while piece := file.read(_PIECE_BYTES):
                yield piece
            if over:  # looked at before the last read: nothing was written in between
                return
            time.sleep(_POLL_S)


def _tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last lines begin, found from the end; a last line without its end counts."""
    position = end = file.seek(0, os.SEEK_END)
    if lines == 0:
        return end
    left = lines
    while position > 0:
        size = min(_PIECE_BYTES, position)
        position -= size
        file.seek(position)
        piece = file.read(size)
        at = len(piece)
        while (at := piece.rfind(b"\n", 0, at)) >= 0:
            if position + at == end - 1:  # the end of the last line begins no other
                continue
            left -= 1
            if left == 0:
                return position + at + 1
    return 0
