"""Batch work: `python -m sublet.demo.batch cpu FILE PROCESSES` counts its work in a file, `memory MIB` fills memory."""

import hashlib
import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import NoReturn

_BODY = b"y" * 1024
_COUNT = struct.Struct("<Q")
ROUNDS_PER_UNIT = 1000
MIB = 1 << 20
MEMORY_STEP_MIB = 32
MEMORY_STEP_S = 0.02


def work(counter: Path, processes: int = 1) -> None:
    """Hash for ever in so many processes; each counts its units into eight bytes of the file."""
    counter.write_bytes(bytes(_COUNT.size * processes))
    children = []
    for number in range(1, processes):
        pid = os.fork()
        if pid == 0:
            _count(counter, number)
        children.append(pid)

    def end(_number: int, _frame: object) -> None:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    _count(counter, 0)


def _count(counter: Path, number: int) -> NoReturn:
    with counter.open("r+b") as handle, mmap.mmap(handle.fileno(), 0) as shared:
        done = 0
        while True:
            for _ in range(ROUNDS_PER_UNIT):
                hashlib.sha256(_BODY).digest()
            done += 1
            _COUNT.pack_into(shared, number * _COUNT.size, done)


def units(counter: Path) -> int:
    """Units of work counted in a file so far."""
    data = counter.read_bytes() if counter.exists() else b""
    whole = len(data) // _COUNT.size * _COUNT.size
    return sum(count for (count,) in _COUNT.iter_unpack(data[:whole]))


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
        work(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    else:
        fill(int(sys.argv[2]))
