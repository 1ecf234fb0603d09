"""The checkpoint writer writes in a thread: a busy disk may take a second, and no pass waits for it."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.core.checkpoint import Checkpoint
from shared.contracts.advice import PoolAdvice


@dataclass(slots=True)
class CheckpointWriter:
    """Only the newest that was offered is written; a clean stop waits for it."""

    file: CheckpointFile
    _offered: tuple[PoolAdvice, Mapping[str, str], Mapping[str, str]] | None = None
    _fresh: asyncio.Event = field(default_factory=asyncio.Event)
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _failed: bool = False
    """Whether the last write failed, which is reported until one succeeds, even if the file on disk is current
    again."""

    def load(self) -> Checkpoint | None:
        """Return what the previous run applied; see `CheckpointFile.load`."""
        return self.file.load()

    def offer(self, advice: PoolAdvice, pools: Mapping[str, str], pods: Mapping[str, str]) -> None:
        """Hand over what is applied now: the advice, the CPUs of its pools, and the CPUs that pods (by UID) own."""
        self._offered = advice, pools, pods
        # A thread for nothing costs more than the look. While one writes, what is held is about to change.
        if self._failed or self._writing.locked() or not self.file.holds(advice, pools, pods):
            self._fresh.set()

    async def run(self, report_failure: Callable[[str], None]) -> None:
        """Write what is offered until cancelled, and then once more what came last.

        `report_failure` is called after each write with the reason why it failed; the text is empty where it did not.
        """
        try:
            while True:
                await self._fresh.wait()
                # Before the write: what is offered during it sets the event again, and is not lost.
                self._fresh.clear()
                report_failure(await asyncio.to_thread(self._write))
        finally:
            # Not in a thread: the loop is ending, and the next life begins with what is on the disk now.
            report_failure(self._write())

    def _write(self) -> str:
        with self._writing:  # cancelling the task does not end its thread: both must not write at once
            if self._offered is None:
                return ""
            try:
                self.file.save(*self._offered)
            except OSError as error:
                self._failed = True
                return f"{error}; a restart would begin at the floor"
            self._failed = False
            return ""
