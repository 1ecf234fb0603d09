"""Lines of JSON into a gzip stream, of which nothing is lost but what was not flushed."""

import zlib
from typing import Any, BinaryIO

from pydantic_core import to_json

GZIP = 31
"""Window bits that make zlib write and read gzip."""


class PackedLines:
    """Writes values, a line each; the same values give the same bytes: neither name nor date stand in the file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._packer = zlib.compressobj(9, zlib.DEFLATED, GZIP)
        self.bytes = 0

    def line(self, value: dict[str, Any]) -> None:
        """Add a line; when it is on its way out is the packer's matter."""
        self._put(self._packer.compress(to_json(value) + b"\n"))

    def flush(self) -> None:
        """Have all that was written so far be unpacked, whatever becomes of the writer."""
        self._put(self._packer.flush(zlib.Z_SYNC_FLUSH))
        self._out.flush()

    def close(self) -> None:
        """End the stream; the file stays open."""
        self._put(self._packer.flush(zlib.Z_FINISH))
        self._out.flush()

    def _put(self, data: bytes) -> None:
        self._out.write(data)
        self.bytes += len(data)
