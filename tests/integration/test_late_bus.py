"""A process that answers without the bus has it as soon as it is there, over one connection."""

import asyncio
from collections.abc import Awaitable, Callable

from services.central.adapters.https import late_bus
from services.central.adapters.https.late_bus import LateBus
from shared.adapters.clock import SystemClock
from shared.adapters.nats.embedded.server import NatsServer
from shared.settings import CommonSettings

Until = Callable[[Callable[[], object]], Awaitable[None]]


class HurriedClock(SystemClock):
    """Counts the waits, and takes none."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = list[float]()

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await super().sleep(0.01)


async def test_a_server_that_comes_late_is_waited_for_and_shared_by_all_who_ask(
    server: NatsServer, until: Until
) -> None:
    url, clock = server.url, HurriedClock()
    server.stop()
    late = LateBus(CommonSettings(node="n1", nats_url=url, connect_timeout_s=0.1), clock, name="extender")
    asked = [asyncio.create_task(late.get()) for _ in range(2)]
    await until(lambda: late_bus.RETRY_S in clock.waits)
    assert not any(task.done() for task in asked)
    server.start()
    one, other = await asyncio.gather(*asked)
    assert one is other
    await until(lambda: late.connected)
    await late.close()


async def test_who_never_asked_leaves_nothing_behind() -> None:
    late = LateBus(CommonSettings(node="n1"), SystemClock(), name="webhook")
    assert not late.connected
    await late.close()
