"""A deterministic event loop for many simulated processes: virtual time, a seeded order, `kill -9` and SIGSTOP.

Every callback belongs to the process in whose context it was registered. Within a process callbacks run in the order
that asyncio promises; between processes a seeded generator chooses whose turn it is. A process that is killed runs
nothing any more, not even a `finally`; one that is frozen catches up when it goes on.
"""

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any


class Killed(BaseException):
    """The process was killed in the middle of what it did."""


class Stuck(RuntimeError):
    """Nothing can go on: no callback is ready and no timer runs."""


@dataclass(eq=False)
class Process:
    """One simulated process, in one of its lives."""

    name: str
    node: str = ""
    alive: bool = True
    frozen: bool = False
    thawed_s: float = float("-inf")
    """When it last went on after it was frozen."""
    dies_in: int | None = None
    """How many steps that change the world it may still begin or end; None: as many as it likes."""
    skew_s: float = 0.0
    """How far its wall clock is off."""
    parked: "deque[asyncio.Handle]" = field(default_factory=deque)
    on_kill: list[Callable[[], None]] = field(default_factory=list)
    context: contextvars.Context = field(default_factory=contextvars.copy_context)

    def __post_init__(self) -> None:
        self.context.run(CURRENT.set, self)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """Begin a task of this process."""
        task = asyncio.get_running_loop().create_task(work, name=name, context=self.context)
        task._log_destroy_pending = False  # type: ignore[attr-defined] # one that was killed never ends
        return task

    def kill(self) -> None:
        """`kill -9`: nothing of it runs any more."""
        if self.alive:
            self.alive = False
            self.parked.clear()
            for release in self.on_kill:
                release()

    def step(self) -> None:
        """Begin or end one step that changes the world outside: the moments at which a crash makes a difference."""
        if not self.alive:
            raise Killed(self.name)
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                self.kill()
                raise Killed(self.name)


CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class InOrder(dict[Any, None]):
    """A set of tasks in the order in which they came: a set's own is that of addresses, which no other process has."""

    def add(self, task: Any) -> None:
        """One more."""
        self[task] = None

    def discard(self, task: Any) -> None:
        """One less."""
        self.pop(task, None)


class SeededLoop(asyncio.BaseEventLoop):
    """Time moves to the next timer when nothing is left to do."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._chance, self._now_s = random.random, 0.0
        self._turns: dict[Process | None, deque[asyncio.Handle]] = {}
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0

    def time(self) -> float:
        """Seconds since the loop began."""
        return self._now_s

    def thaw(self, process: Process) -> None:
        """Let a frozen process go on where it was."""
        process.frozen, process.thawed_s = False, self._now_s
        if process.alive and process.parked:
            self._turns.setdefault(process, deque()).extendleft(reversed(process.parked))
        process.parked.clear()

    def run_in_executor(self, _executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        """Threads take their turn as callbacks do: two of them in a seeded order is what makes a run repeat itself."""
        done: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001 - handed on, as a pool does
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self.call_soon(work)
        return done

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As its base; timers of the same moment end in the order in which they were made."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def _run_once(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self._now_s:
            self._ready.append(heapq.heappop(timers)[2])  # type: ignore[attr-defined]
        if self._ready:  # type: ignore[attr-defined]
            self._sort_into_turns()
        if not self._turns:
            self._pass_time()
            return
        turns = self._turns
        process = next(iter(turns)) if len(turns) == 1 else list(turns)[int(self._chance() * len(turns))]
        queue = turns[process]
        if process is not None and (process.frozen or not process.alive):
            process.parked.extend(queue if process.alive else ())
            del turns[process]
            return
        handle = queue.popleft()
        if not queue:
            del turns[process]
        if not handle._cancelled:
            handle._run()

    def _sort_into_turns(self) -> None:
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        turns = self._turns
        while ready:
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(CURRENT)  # type: ignore[attr-defined]
            if process is None or (process.alive and not process.frozen):
                if (queue := turns.get(process)) is None:
                    turns[process] = queue = deque()
                queue.append(handle)
            elif process.alive:
                process.parked.append(handle)

    def _pass_time(self) -> None:
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            if self._stopping:  # type: ignore[attr-defined]
                return
            raise Stuck("no callback is ready and no timer runs")
        self._now_s = max(self._now_s, timers[0][0])

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are left out when their time comes."""

    def _write_to_self(self) -> None:
        """Nobody waits for input here."""

    def _process_events(self, _events: Any) -> None:
        """There are none."""
