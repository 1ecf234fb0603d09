"""Batch work: `python -m sublet.demo.batch cpu FILE` counts units of work into a file, `memory MIB` fills memory."""

import hashlib
import mmap
import struct
import sys
import time
from pathlib import Path

_BODY = b"y" * 1024
ROUNDS_PER_UNIT = 1000
MIB = 1 << 20
MEMORY_STEP_MIB = 32
MEMORY_STEP_S = 0.02


def work(counter: Path) -> None:
    """Hash for ever; the number of units done is in the file's first 8 bytes."""
    counter.write_bytes(bytes(8))
    with counter.open("r+b") as handle, mmap.mmap(handle.fileno(), 8) as shared:
        done = 0
        while True:
            for _ in range(ROUNDS_PER_UNIT):
                hashlib.sha256(_BODY).digest()
            done += 1
            shared[:8] = struct.pack("<Q", done)


def units(counter: Path) -> int:
    """Units of work counted in a file so far."""
    data = counter.read_bytes() if counter.exists() else b""
    return struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0


def fill(mib: int) -> None:
    """Take memory step by step and keep it."""
    held = []
    for _ in range(0, mib, MEMORY_STEP_MIB):
        held.append(bytearray(b"z") * (MEMORY_STEP_MIB * MIB))
        time.sleep(MEMORY_STEP_S)
    while True:
        time.sleep(1.0)


if __name__ == "__main__":
    if sys.argv[1] == "cpu":
        work(Path(sys.argv[2]))
    else:
        fill(int(sys.argv[2]))
