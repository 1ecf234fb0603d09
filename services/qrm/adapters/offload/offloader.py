"""The cgroup offloader reads what cgroups use and writes `memory.reclaim` (cgroup v2, kernel 5.19 and later).

The kernel works while the writer waits, so that a step is written in pieces and ends with the first that the kernel
cannot fulfil (EAGAIN: it reclaimed less than asked for). Call it from a thread: a piece may take long.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from services.qrm.core.memory.offload import (
    MemoryReading,
    OffloadPace,
    OffloadRules,
    OffloadStep,
    next_step,
    pressure_percent,
    refault_pages,
)
from shared.adapters.host.cgroup import GONE, Cgroups

PIECE_BYTES = 16 << 20
FILE = "memory.reclaim"
Status = Literal["done", "partial", "absent", "refused"]


@dataclass(frozen=True, slots=True)
class ReclaimResult:
    """The result of a step: the bytes of the pieces that the kernel fulfilled, and how it ended."""

    asked_bytes: int
    given_bytes: int
    status: Status
    why: str = ""


def write_text(path: Path, text: str) -> None:
    """Write to an existing file, without following links.

    Raises:
        OSError: it does not exist, or the kernel refused.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


class CgroupOffloader:
    """Gives back idle memory of cgroups, step by step."""

    def __init__(self, cgroups: Cgroups, write: Callable[[Path, str], None] = write_text) -> None:
        self._cgroups, self._write = cgroups, write
        self._paces: dict[str, OffloadPace] = {}

    def step(self, group: str, rules: OffloadRules, now_s: float) -> tuple[OffloadStep, ReclaimResult]:
        """Observe a cgroup, and reclaim what follows from it."""
        decision = next_step(self._paces.get(group, OffloadPace()), rules, now_s, self.observe(group))
        self._paces[group] = decision.pace
        return decision, self.reclaim(group, decision.bytes)

    def forget(self, present: frozenset[str]) -> None:
        """Forget cgroups that are not there any more."""
        self._paces = {group: pace for group, pace in self._paces.items() if group in present}

    def observe(self, group: str) -> MemoryReading:
        """Return a cgroup's use and stalls; nothing on cgroup v1, which has neither PSI nor `memory.reclaim`."""
        if self._cgroups.version == 1:
            return MemoryReading()
        usage = self._cgroups.text(group, "memory.current") or ""
        stat = self._cgroups.text(group, "memory.stat") or ""
        fields = dict(line.split(" ", 1) for line in stat.splitlines() if " " in line)
        return MemoryReading(
            usage_bytes=int(usage) if usage.strip().isdigit() else None,
            pressure_percent=pressure_percent(self._cgroups.text(group, "memory.pressure") or ""),
            refault_pages=refault_pages(fields),
        )

    def reclaim(self, group: str, amount_bytes: int) -> ReclaimResult:
        """Ask the kernel for memory of a cgroup, piece by piece."""
        if self._cgroups.version == 1:
            return ReclaimResult(amount_bytes, 0, "absent", "cgroup v1 has no memory.reclaim")
        path = self._cgroups.folder(group) / FILE
        given = 0
        while given < amount_bytes:
            piece = min(PIECE_BYTES, amount_bytes - given)
            try:
                self._write(path, str(piece))
            except OSError as error:
                return _ended(amount_bytes, given, error)
            given += piece
        return ReclaimResult(amount_bytes, given, "done")


def _ended(asked: int, given: int, error: OSError) -> ReclaimResult:
    if error.errno == errno.EAGAIN:
        return ReclaimResult(asked, given, "partial", "the kernel found less that it could reclaim")
    if error.errno in GONE:
        return ReclaimResult(asked, given, "absent", f"no {FILE}: the cgroup is gone, or the kernel is older than 5.19")
    return ReclaimResult(asked, given, "refused", error.strerror or str(error))
