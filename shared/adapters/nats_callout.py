"""Authorization callout: the NATS server asks about logins that its configuration does not know (NATS ADR-26).

On a connection of its own, for only a user of the callout's account is asked, and nobody else shall read what is shown.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from nats.aio.msg import Msg

from shared.adapters.nats_link import FAILURES, Link, cancellable, unavailable
from shared.errors import Refused, SubletError, Unavailable
from shared.ports import Clock

log = structlog.get_logger()

SUBJECT = "$SYS.REQ.USER.AUTH"
GROUP = "central"
"""Of several that listen, one answers."""
AT_ONCE = 32
"""Questions under way; after an outage all nodes come at the same time, and ask again when nobody answers."""
CONNECT_S, PAUSE_S = 20.0, 1.0


class Callout:
    """Listens as the user of `url`, and sends what `answer` says."""

    def __init__(self, url: str, *, name: str, clock: Clock, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._url, self._name, self._clock, self._answer = url, name, clock, answer
        self._room = asyncio.Semaphore(AT_ONCE)
        self._link: Link | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self.failure = "does not listen yet"
        """Why nobody is answered; "" while somebody would be."""

    async def run(self) -> None:
        """Answer until cancelled; a server that is away is waited for.

        Raises:
            Unavailable: the connection closed for good.
        """
        self._link = link = await self._opened()
        with unavailable(SUBJECT):
            await link.client.subscribe(SUBJECT, queue=GROUP, cb=self._take)
        self.failure = ""
        why = await link.wait_closed()
        raise Unavailable(f"logins of leaves: connection closed for good: {why}", reason="closed")

    async def _opened(self) -> Link:
        while True:
            link = Link(self._url, name=self._name, clock=self._clock)
            try:
                await link.open(CONNECT_S)
            except Unavailable as error:
                self.failure = str(error)
                log.warning("logins.no_bus", why=str(error))
                await self._clock.sleep(PAUSE_S)
            else:
                return link

    async def _take(self, message: Msg) -> None:
        task = asyncio.create_task(self._reply(message), name="login")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _reply(self, message: Msg) -> None:
        async with self._room:
            try:
                answer = await self._answer(message.data)
                with cancellable():
                    await message.respond(answer)
            except Refused as refusal:  # not a question at all
                log.warning("login.not_understood", why=str(refusal))
            except (SubletError, *FAILURES) as error:
                log.warning("login.not_answered", why=str(error))

    async def close(self) -> None:
        """Answer nobody any more."""
        for task in tuple(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._link is not None:
            await self._link.drain()
