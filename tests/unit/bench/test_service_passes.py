"""CPU time is counted for the service whose task spends it, or whose task has started the one that does."""

import asyncio
import time

from bench.service_passes import MESSAGES, OTHERS, CountingLoop

STEP_S = 0.02


def work() -> None:
    end_s = time.thread_time() + STEP_S
    while time.thread_time() < end_s:
        pass


async def worker() -> None:
    work()
    await asyncio.sleep(1.0)
    work()


async def service() -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker(), name="anything")
        await asyncio.sleep(3.0)


async def machine() -> None:
    asyncio.get_running_loop().call_soon(work)
    task = asyncio.create_task(service(), name="qrm")
    await asyncio.sleep(2.0)
    work()
    await task


def test_each_second_of_each_service_is_counted_apart() -> None:
    loop = CountingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(machine())
    counted = {
        (who, second)
        for who, seconds in loop.spent.by.items()
        for second, spent_s in seconds.items()
        if spent_s >= STEP_S
    }
    assert counted == {(MESSAGES, 0), ("qrm", 0), ("qrm", 1), (OTHERS, 2)}
