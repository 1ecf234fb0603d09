"""The loop of the simulator: time is what timers say, and only what comes from outside is waited for."""

import asyncio
import threading

from sublet.sim.virtual_time import VirtualTimeLoop


def test_waiting_takes_no_time_and_timers_end_in_their_order() -> None:
    ended: list[str] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append(f"{name} at {asyncio.get_running_loop().time():g}")

    async def work() -> None:
        await asyncio.gather(wait("day", 86_400.0), wait("moment", 0.25), wait("hour", 3600.0))

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(work())
    assert ended == ["moment at 0.25", "hour at 3600", "day at 86400"]


def test_a_thread_is_waited_for_and_no_time_passes() -> None:
    async def work() -> tuple[bool, float]:
        came = await asyncio.to_thread(threading.Event().wait, 0.01)
        return came, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(work()) == (False, 0.0)


def test_a_limit_in_virtual_time_ends_what_never_comes() -> None:
    async def work() -> float:
        try:
            async with asyncio.timeout(7.5):
                await asyncio.Event().wait()
        except TimeoutError:
            return asyncio.get_running_loop().time()
        return 0.0

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(work()) == 7.5
