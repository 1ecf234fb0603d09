"""Checkpoints written behind the passes: a disk that is busy takes a second for one, and holds nothing up."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.qrm.adapters.state.checkpoint import CheckpointFile
from services.qrm.conditions import Conditions
from shared.contracts.advice import PoolAdvice

FAILED = "CheckpointFailed"


@dataclass(slots=True)
class Saving:
    """Only the newest that was offered is written; a clean stop waits for it."""

    file: CheckpointFile
    conditions: Conditions
    _offered: tuple[PoolAdvice, Mapping[str, str], Mapping[str, str]] | None = None
    _fresh: asyncio.Event = field(default_factory=asyncio.Event)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def offer(self, advice: PoolAdvice, pools: Mapping[str, str], pods: Mapping[str, str]) -> None:
        """What is applied now: the advice, the CPUs of its pools, and those that pods (by UID) have for themselves."""
        self._offered = advice, pools, pods
        self._fresh.set()

    async def run(self) -> None:
        """Write what is offered until cancelled, and then once more what came last."""
        try:
            while True:
                await self._fresh.wait()
                self._fresh.clear()
                self.conditions.set(FAILED, await asyncio.to_thread(self._write))
        finally:
            self.conditions.set(FAILED, self._write())

    def _write(self) -> str:
        """Why it could not be written; empty: it is."""
        with self._writing:  # a thread goes on when its task is cancelled
            if self._offered is None:
                return ""
            try:
                self.file.save(*self._offered)
            except OSError as error:
                return f"{error}; a restart would begin at the floor"
            return ""
