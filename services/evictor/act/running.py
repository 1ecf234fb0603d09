"""Runs evictions, each in a task of its own, and backs off from pods that could not be evicted."""

import asyncio
from collections.abc import Callable, Iterable

from services.evictor.act.backoff import Backoff
from services.evictor.act.executor import CallLimits, Executor
from shared.core.evictions.intents import IntentRecord
from shared.errors import Unavailable
from shared.ports import Clock


class RunningEvictions:
    """The running evictions, and the pods that are skipped for a while."""

    def __init__(
        self,
        executor: Executor,
        clock: Clock,
        limits: Callable[[], CallLimits],
        lose_ledger: Callable[[Unavailable], None],
    ) -> None:
        """`limits` is asked when an eviction starts; `lose_ledger` is called when the ledger fails under one."""
        self._executor, self._clock, self._limits, self._lose_ledger = executor, clock, limits, lose_ledger
        self._backoff = Backoff()
        self._running: dict[str, IntentRecord] = {}
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def records(self) -> tuple[IntentRecord, ...]:
        """The intents under way."""
        # A copy: a round that reads them starts evictions itself.
        return tuple(self._running.values())

    @property
    def plugins(self) -> set[str]:
        """Plugins with an eviction under way."""
        return {record.intent.plugin for record in self._running.values()}

    @property
    def pods(self) -> set[str]:
        """UIDs of the pods under way."""
        return {record.pod.uid for record in self._running.values()}

    def backing_off(self, now_s: float) -> set[str]:
        """Return the UIDs of the pods that are skipped now."""
        return self._backoff.waiting(now_s)

    def run_in(self, tasks: asyncio.TaskGroup) -> None:
        """Start evictions in this group from now on."""
        self._tasks = tasks

    def start(self, record: IntentRecord) -> None:
        """Carry out an intent that the ledger has."""
        if self._tasks is None:
            raise RuntimeError("evictions start only while the evictor runs")
        self._running[record.id] = record
        self._tasks.create_task(self._carry_out(record), name=f"eviction-{record.id}")

    def resume(self, records: Iterable[IntentRecord]) -> None:
        """Go on with what is unfinished."""
        for record in records:
            # A ledger that failed for a moment leaves running evictions alone: two tasks for
            # one intent would call twice.
            if record.id not in self._running:
                self.start(record)

    def forget(self) -> None:
        """Drop what is long over."""
        self._backoff.forget(self._clock.monotonic())

    async def _carry_out(self, record: IntentRecord) -> None:
        try:
            ended = await self._executor.carry_out(record, self._limits())
            # Also when it was called off: without a pause the next sample would choose the same pod
            # again, and again in vain.
            if ended.step != "succeeded":
                self._backoff.add(ended.pod.uid, self._clock.monotonic())
        except Unavailable as error:  # bus and actuator answer for themselves: only the ledger is left
            self._lose_ledger(error)
        finally:
            # Without an end in the ledger the intent stays live there, and is resumed once the ledger works.
            self._running.pop(record.id, None)
