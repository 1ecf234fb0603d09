"""From a file to traces: which format it is in, by its content, and who reads it."""

import io
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO, Literal

from shared.errors import Refused
from shared.text_file import os_reason
from sublet.replay.traces.frames import Faults, Trace
from sublet.replay.traces.planetlab import INTERVAL_S, looks_like_planetlab, read_planetlab
from sublet.replay.traces.reading import read_recording
from sublet.replay.traces.tenants import Packing, nodes_of
from sublet.replay.traces.usage_csv import looks_like_usage, read_usage

FileFormat = Literal["auto", "recording", "planetlab", "csv"]
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_HEAD_BYTES = 1 << 16


def traces(path: Path, file_format: FileFormat, packing: Packing) -> Iterator[Trace]:
    """The traces of one file; the file is open while they are read.

    Raises:
        Refused: the file cannot be read, is in no known format, or nothing in it can be used.
    """
    name = path.name
    try:
        with path.open("rb") as source:
            chosen = _format_of(name, source) if file_format == "auto" else file_format
            if chosen == "recording":
                yield read_recording(name, source)
            else:
                yield from _from_lines(name, source, chosen, packing)
    except OSError as error:
        raise Refused(f"{path}: {os_reason(error)}", reason="unreadable") from error


def _from_lines(name: str, source: BinaryIO, chosen: FileFormat, packing: Packing) -> Iterator[Trace]:
    """All series of a file are read before the first node: any of them may be on it.

    Unless said otherwise so many PlanetLab machines share a node as together request all of it, and all ids of a CSV.
    """
    stem = name.split(".", maxsplit=1)[0]
    told = False
    for one in packing.each():
        faults = Faults()
        source.seek(0)
        with _text(source) as text:
            lines = _whole_lines(name, text, faults)
            if chosen == "planetlab":
                series, interval_s = read_planetlab(name, lines, one.pod_cores, faults), INTERVAL_S
                usual = max(1, int(one.cpus / one.pod_cores))
            else:
                (series, interval_s), usual = read_usage(name, lines, faults), 0
        if one.pods_per_node is None:
            one = replace(one, pods_per_node=usual)  # noqa: PLW2901
        for trace in nodes_of(series, interval_s, one, stem):
            if not told:  # what was found in the file is told once
                trace.faults.refused += faults.refused
                trace.faults.lost_frames, trace.faults.notes = faults.lost_frames, faults.notes
                told = True
            yield trace


def _format_of(name: str, source: BinaryIO) -> FileFormat:
    magic = source.read(len(_XZ))
    source.seek(0)
    # By content: a file that was downloaded or renamed has any name.
    if magic.startswith((_GZIP, b"{")):
        return "recording"
    with _text(source) as text:
        try:
            first = text.readline(_HEAD_BYTES)
        except (EOFError, lzma.LZMAError, UnicodeDecodeError):
            first = ""
    source.seek(0)
    if looks_like_usage(first):
        return "csv"
    if looks_like_planetlab(first):
        return "planetlab"
    raise Refused(
        f"{name}: no known format: want a recording, a PlanetLab day, or a CSV with the header time_s,id,usage_cores; "
        "--format says which",
        reason="unknown_format",
    )


@contextmanager
def _text(source: BinaryIO) -> Iterator[IO[str]]:
    """The file as text, unpacked where it is xz; the file stays open."""
    packed = source.read(len(_XZ)) == _XZ
    source.seek(0)
    unpacked = lzma.LZMAFile(source) if packed else source  # noqa: SIM115 - it holds nothing but `source`
    text = io.TextIOWrapper(unpacked, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        # The wrapper would close `source`, which the caller still reads; an unpacker in between is closed alone.
        if not packed:
            text.detach()


def _whole_lines(name: str, text: IO[str], faults: Faults) -> Iterator[str]:
    """The lines that are there; the last one is lost where the file ends within it."""
    try:
        for line in text:
            if not line.endswith("\n"):
                faults.lost_frames += 1
                faults.notes.append(f"{name}: the last line has no end: the file is cut")
                return
            yield line
    except (EOFError, lzma.LZMAError) as error:
        faults.lost_frames += 1
        faults.notes.append(f"{name}: the compressed data is cut or damaged ({error})")
    except UnicodeDecodeError as error:
        raise Refused(f"{name}: no text in UTF-8; --format says what it is", reason="malformed") from error
