"""An event loop on which waiting takes no time: the simulator runs hours of a scenario in seconds."""

import asyncio
import selectors


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock starts at 0 and moves, where nothing is left to do, to the next timer at once."""

    def __init__(self) -> None:
        self._passing = _PassingTime()
        super().__init__(self._passing)

    def time(self) -> float:
        """Seconds that have passed on this loop."""
        return self._passing.passed_s


class _PassingTime(selectors.SelectSelector):
    """Selector that counts the time for which it is asked to wait, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Ready files. Without any timer (timeout None) only a file or a thread can go on: that is waited for."""
        # 0 for any number, None for None.
        ready = super().select(timeout and 0)
        # What is ready now comes before the timer: no time has passed for it.
        if not ready and timeout is not None and timeout > 0:
            self.passed_s += timeout
        return ready
