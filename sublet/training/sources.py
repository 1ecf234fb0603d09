"""Training data: recordings and traces as `sublet replay` reads them, and synthetic tenants by name."""

import re
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from shared.errors import Refused
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.loaders import traces
from sublet.replay.traces.tenants import Packing
from sublet.training.synthetic import NAME, synthetic

_SYNTHETIC = re.compile(rf"{NAME}(?::(\d{{1,9}}))?")


def traces_of(source: str, packing: Packing) -> Iterator[Trace]:
    """The traces of a file, or of `synthetic` or `synthetic:SEED` (seed 0).

    Raises:
        Unavailable: the file cannot be read.
        Refused: it is in no known format, or nothing in it can be used.
    """
    made_up = _SYNTHETIC.fullmatch(source)
    if made_up:
        return synthetic(int(made_up[1] or 0))
    return traces(Path(source), "auto", packing)


def all_traces(sources: Iterable[str], packing: Packing) -> Generator[tuple[str, Trace], None, None]:
    """Every trace with the name of its source: the file's name without its folder.

    Raises:
        Refused: as `traces_of`; or a trace holds frames that cannot be used.
    """
    for source in sources:
        for trace in traces_of(source, packing):
            yield Path(source).name, trace
            if trace.faults.refused:
                raise Refused(
                    f"training: {trace.faults.refused[0]} ({trace.faults.refused_frames} in all); "
                    "a model is not learned from a file with faults: leave these lines out",
                    reason="malformed",
                )
