"""Progress of `sublet record` and `sublet replay`: lines on standard error, beside their results."""

from collections.abc import Iterable, Iterator
from typing import TextIO

from sublet.replay.judging.total import ReplayOutcome
from sublet.replay.traces.frames import Faults, Trace
from sublet.replay.traces.recorder import SILENCE_S, Ending, Progress

ENDINGS: dict[Ending, str] = {
    "stopped": "stopped",
    "time": "the time is over",
    "full": "the file has the size that --max-mb allows; record on in another one",
}
QUIET_EVERY_S = 60.0
"""Where nobody watches a terminal, one line a minute is enough."""
NO_SAMPLE = "is the metrics service running?"
NAMED_FRAMES = 10
_MINUTE_S, _HOUR_S = 60, 3600


class ProgressLine:
    """Progress of a recording: one line that is written over on a terminal, else a line a minute."""

    def __init__(self, node: str, out: TextIO, *, silence: str = NO_SAMPLE) -> None:
        """`silence`: what is asked where nothing comes."""
        self._silence = silence
        self._node, self._out, self._terminal = node, out, out.isatty()
        self._told_s: float | None = None
        self._silent = False

    def show(self, progress: Progress) -> None:
        """Say how far it is, if it is time."""
        silent = progress.silent_s >= SILENCE_S
        due = self._told_s is None or progress.passed_s >= self._told_s + QUIET_EVERY_S
        if not (self._terminal or due or silent != self._silent):
            return
        self._told_s, self._silent = progress.passed_s, silent
        line = f"recording {self._node}: {clock(progress.passed_s)}, {progress.frames} frames, {size(progress.bytes)}"
        if silent:
            line += f"; nothing for {progress.silent_s:.0f} s: {self._silence}"
        self._out.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
        self._out.flush()

    def end(self, line: str) -> None:
        """The last line."""
        self._out.write(f"\r\x1b[K{line}\n" if self._terminal else f"{line}\n")
        self._out.flush()


def each(traces: Iterable[Trace], out: TextIO) -> Iterator[Trace]:
    """The traces; on a terminal the name of the one that is being replayed."""
    for trace in traces:
        if out.isatty():
            out.write(f"\r\x1b[Kreplaying {trace.node}")
            out.flush()
        yield trace
    if out.isatty():
        out.write("\r\x1b[K")


def clock(seconds: float) -> str:
    """A duration as h:mm:ss."""
    whole = int(seconds)
    return f"{whole // _HOUR_S}:{whole // _MINUTE_S % _MINUTE_S:02d}:{whole % _MINUTE_S:02d}"


def size(count: int) -> str:
    """Bytes as kB or MB."""
    return f"{count / 1e3:.0f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"


def faults(found: Faults) -> Iterator[str]:
    """What of the files could not be used, one line each."""
    yield from found.notes
    if found.lost_frames:
        yield f"lost: {found.lost_frames} frame{'' if found.lost_frames == 1 else 's'}, begun and not finished"
    for line in found.refused[:NAMED_FRAMES]:
        yield f"frame refused: {line}"
    if found.refused_frames > NAMED_FRAMES:
        yield f"frames refused: {found.refused_frames - NAMED_FRAMES} more"
    if found.gaps_s:
        yield f"gaps: {found.gaps_s:g} s without a frame are not counted"


def speed(outcome: ReplayOutcome, took_s: float) -> str:
    """How much faster than real time it was: time of all nodes together by the time that it took."""
    ratio = outcome.node_s / max(took_s, 1e-9)
    return (
        f"{clock(outcome.node_s)} of nodes' time, {len(outcome.rows)} rows, in {took_s:.1f} s: "
        f"{ratio:.0f} times real time ({ratio * len(outcome.rows):.0f} a row)"
    )
