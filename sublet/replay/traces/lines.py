"""Lines of a recording, packed or not, as far as they can be read."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from sublet.replay.traces.frames import Faults
from sublet.replay.traces.packed import GZIP

_CHUNK_BYTES = 1 << 16
_PACKED_BYTES = 1 << 9
"""Bytes that are unpacked at once: where the data is damaged, the whole piece is lost."""
_MAX_LINE_BYTES = 8 << 20


def whole_lines(source: BinaryIO, faults: Faults) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their numbers, from 1; a last line without its end is lost."""
    rest, number = b"", 0
    for piece in _pieces(source, faults):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number += 1
            yield number, line
        # No recorder writes such a line: to read on would fill the memory with a file that is something else.
        if len(rest) > _MAX_LINE_BYTES:
            break
    if rest:
        faults.lost_frames += 1


def _pieces(source: BinaryIO, faults: Faults) -> Iterator[bytes]:
    """The text in pieces, unpacked where it is packed, as far as it can be read."""
    data = source.read(_CHUNK_BYTES)
    if data[:2] != b"\x1f\x8b":
        while data:
            yield data
            data = source.read(_CHUNK_BYTES)
        return
    unpacker = zlib.decompressobj(GZIP)
    while data:
        # In small bites: a few packed bytes may be a thousand times as many unpacked.
        for first in range(0, len(data), _PACKED_BYTES):
            try:
                yield unpacker.decompress(data[first : first + _PACKED_BYTES])
            except zlib.error as error:
                faults.notes.append(f"the compressed data is damaged ({error}): what comes after it is lost")
                return
        data = source.read(_CHUNK_BYTES)
    yield unpacker.flush()
