"""From files to traces: which format each is in, by its content, and who reads it."""

import gzip
import io
import lzma
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median_low
from typing import IO, BinaryIO, Literal

from shared.errors import Refused
from shared.text_file import os_reason
from sublet.replay.traces.formats.alibaba import looks_like_alibaba, read_alibaba
from sublet.replay.traces.formats.azure import looks_like_azure, read_azure
from sublet.replay.traces.formats.bitbrains import looks_like_bitbrains, read_bitbrains
from sublet.replay.traces.formats.google import looks_like_google, read_google
from sublet.replay.traces.formats.planetlab import INTERVAL_S, looks_like_planetlab, read_planetlab
from sublet.replay.traces.formats.prometheus import looks_like_prometheus, read_prometheus
from sublet.replay.traces.formats.usage_csv import looks_like_usage, read_usage
from sublet.replay.traces.frames import Faults, Trace
from sublet.replay.traces.reading import read_recording
from sublet.replay.traces.tenants import Packing, TenantSeries, nodes_of

FileFormat = Literal["auto", "recording", "planetlab", "csv", "prometheus", "alibaba", "google", "azure", "bitbrains"]
KNOWN: dict[FileFormat, str] = {
    "csv": "a CSV with the header time_s,id,usage_cores",
    "prometheus": "an answer of Prometheus to a range query",
    "google": "Google's instance_usage",
    "bitbrains": "a VM of Bitbrains",
    "planetlab": "a PlanetLab day",
    "alibaba": "Alibaba's usage tables",
    "azure": "Azure's VM readings",
}
"""Formats of tenants' series, in the order in which they are tried."""
_LOOKS_LIKE = {
    "csv": looks_like_usage,
    "prometheus": looks_like_prometheus,
    "google": looks_like_google,
    "bitbrains": looks_like_bitbrains,
    "planetlab": looks_like_planetlab,
    "alibaba": looks_like_alibaba,
    "azure": looks_like_azure,
}
_ONE_NODE = ("csv", "prometheus")
"""All tenants of such a file are on one node unless said otherwise."""
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_HEAD_BYTES = 1 << 16
_MAX_LINE_CHARACTERS = 1 << 20
_DAMAGED = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def traces(path: Path, file_format: FileFormat, packing: Packing) -> Iterator[Trace]:
    """The traces of one file; the file is open while they are read.

    Raises:
        Refused: the file cannot be read, is in no known format, or nothing in it can be used.
    """
    yield from all_traces([path], file_format, packing)


def all_traces(paths: Iterable[Path], file_format: FileFormat, packing: Packing) -> Iterator[Trace]:
    """The traces of several files, each by itself; files of Bitbrains are of one VM each, and make nodes together.

    Raises:
        Refused: a file cannot be read, is in no known format, or nothing in it can be used.
    """
    vms: list[Path] = []
    for path in paths:
        name = path.name
        try:
            with path.open("rb") as source:
                chosen = _format_of(name, source) if file_format == "auto" else file_format
                if chosen == "recording":
                    yield read_recording(name, source)
                elif chosen == "bitbrains":
                    vms.append(path)
                else:
                    yield from _nodes([path], chosen, packing)
        except OSError as error:
            raise Refused(f"{path}: {os_reason(error)}", reason="unreadable") from error
    if vms:
        yield from _nodes(vms, "bitbrains", packing)


def is_recording(path: Path, file_format: FileFormat) -> bool:
    """Whether a file is a recording, or none that can be read."""
    return _format_said(path, file_format) == "recording"


def most_nodes(paths: Iterable[Path], file_format: FileFormat, packing: Packing) -> int:
    """At most so many nodes are in these files; `sys.maxsize` where that is known only once they have been read."""
    files = Counter(_format_said(path, file_format) for path in paths)
    recordings = files.pop("recording", 0)
    return recordings + sum(_most_of(chosen, count, one) for chosen, count in files.items() for one in packing.each())


def _most_of(chosen: FileFormat, files: int, packing: Packing) -> int:
    size, asked = _pods_per_node(chosen, packing), packing.nodes or sys.maxsize
    if chosen == "bitbrains":  # a tenant a file
        return min(files // size if size else 1, asked)
    return files * (asked if size else 1)


def _format_said(path: Path, file_format: FileFormat) -> FileFormat:
    """The format of a file; one that cannot be read counts as a recording, which is of one node."""
    if file_format != "auto":
        return file_format
    try:
        with path.open("rb") as source:
            return _format_of(path.name, source)
    except (OSError, Refused):
        return "recording"


def _nodes(paths: list[Path], chosen: FileFormat, packing: Packing) -> Iterator[Trace]:
    """All series of a file are read before the first node: any of them may be on it.

    Unless said otherwise so many tenants share a node as together request all of it.
    """
    stem = paths[0].name.split(".", maxsplit=1)[0] if len(paths) == 1 else chosen
    told = False
    for one in packing.each():
        faults, series, intervals_s = Faults(), [], []
        for path in paths:
            found, interval_s = _read(path, chosen, one, faults)
            series += found
            intervals_s.append(interval_s)
        if faults.capped_percents:
            faults.notes.append(f"{stem}: {faults.capped_percents} percentages above 100 count as 100")
        packed = replace(one, pods_per_node=_pods_per_node(chosen, one))
        for trace in nodes_of(series, median_low(intervals_s), packed, stem):
            if not told:  # what was found in the files is told once
                trace.faults.add(faults)
                told = True
            yield trace


def _pods_per_node(chosen: FileFormat, packing: Packing) -> int:
    """How many tenants share a node; 0: all."""
    if packing.pods_per_node is not None:
        return packing.pods_per_node
    return 0 if chosen in _ONE_NODE else max(1, int(packing.cpus / packing.pod_cores))


def _read(path: Path, chosen: FileFormat, packing: Packing, faults: Faults) -> tuple[list[TenantSeries], float]:
    """The series of one file, and the usual time between two values."""
    name = path.name
    with path.open("rb") as source, _text(source) as text:
        if chosen == "prometheus":
            return read_prometheus(name, _pieces(name, text), faults)
        lines = _whole_lines(name, text, faults)
        match chosen:
            case "planetlab":
                return read_planetlab(name, lines, packing.pod_cores, faults), INTERVAL_S
            case "alibaba":
                return read_alibaba(name, lines, packing.pod_cores, faults)
            case "azure":
                return read_azure(name, lines, packing.pod_cores, faults)
            case "google":
                return read_google(name, lines, packing.cpus, faults)
            case "bitbrains":
                return read_bitbrains(name, lines, faults)
        return read_usage(name, lines, faults)


def _format_of(name: str, source: BinaryIO) -> FileFormat:
    """The format by content: a file that was downloaded or renamed has any name."""
    packed = source.read(_HEAD_BYTES)
    source.seek(0)
    head = _head(packed)
    first = head.split("\n", maxsplit=1)[0]
    if found := next((known for known in KNOWN if _LOOKS_LIKE[known](first)), None):
        return found
    # An answer that was printed with line breaks says what it is below its first line.
    if looks_like_prometheus(head) and '"sublet"' not in first:
        return "prometheus"
    if packed.startswith((_GZIP, b"{")):
        return "recording"
    raise Refused(
        f"{name}: no known format: want a recording, {', '.join(KNOWN.values())}; --format says which",
        reason="unknown_format",
    )


def _head(packed: bytes) -> str:
    """The beginning as text, as far as it can be unpacked and read."""
    try:
        if packed.startswith(_GZIP):
            packed = zlib.decompressobj(31).decompress(packed, _HEAD_BYTES)
        elif packed.startswith(_XZ):
            packed = lzma.LZMADecompressor().decompress(packed, _HEAD_BYTES)
    except (zlib.error, lzma.LZMAError, EOFError):
        return ""
    return packed.decode(errors="replace")


@contextmanager
def _text(source: BinaryIO) -> Iterator[IO[str]]:
    """The file as text, unpacked where it is gzip or xz; the file stays open."""
    magic = source.read(len(_XZ))
    source.seek(0)
    unpacked: IO[bytes] | gzip.GzipFile = source
    if magic == _XZ:
        unpacked = lzma.LZMAFile(source)  # noqa: SIM115 - it holds nothing but `source`
    elif magic.startswith(_GZIP):
        unpacked = gzip.GzipFile(fileobj=source)
    text = io.TextIOWrapper(unpacked, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        # The wrapper would close `source`, which the caller still reads; an unpacker in between is closed alone.
        if unpacked is source:
            text.detach()


def _pieces(name: str, text: IO[str]) -> Iterator[str]:
    """The text of one document, which is of no use where it is cut."""
    try:
        while piece := text.read(_MAX_LINE_CHARACTERS):
            yield piece
    except (*_DAMAGED, UnicodeDecodeError) as error:
        raise Refused(f"{name}: the file is cut or damaged ({error})", reason="malformed") from error


def _whole_lines(name: str, text: IO[str], faults: Faults) -> Iterator[str]:
    """The lines that are there; the last one is lost where the file ends within it."""
    try:
        while line := text.readline(_MAX_LINE_CHARACTERS + 1):
            if len(line) > _MAX_LINE_CHARACTERS:
                raise Refused(f"{name}: a line of more than {_MAX_LINE_CHARACTERS} characters", reason="too_large")
            if not line.endswith("\n"):
                faults.lost_frames += 1
                faults.notes.append(f"{name}: the last line has no end: the file is cut")
                return
            yield line
    except _DAMAGED as error:
        faults.lost_frames += 1
        faults.notes.append(f"{name}: the compressed data is cut or damaged ({error})")
    except UnicodeDecodeError as error:
        raise Refused(f"{name}: no text in UTF-8; --format says what it is", reason="malformed") from error
