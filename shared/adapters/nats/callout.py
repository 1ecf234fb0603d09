"""The authorization callout answers the NATS server about logins that its configuration does not know (NATS ADR-26).

It has its own connection: the server asks a user of the callout's account, and no other user may read the credentials
in the questions.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog
from nats.aio.msg import Msg

from shared import telemetry
from shared.adapters.nats.link import FAILURES, Link, cancellable, unavailable
from shared.errors import Refused, SubletError, Unavailable
from shared.ports import Clock

log = structlog.get_logger()

Answer = Callable[[bytes], Awaitable[bytes | None]]

SUBJECT = "$SYS.REQ.USER.AUTH"
AT_ONCE, WAITING = 32, 1024
"""Questions under way, and those taken at all: after an outage all nodes come at the same time, and so may strangers.

A server that gets no answer asks again.
"""
CONNECT_S, PAUSE_S = 20.0, 1.0


class Callout:
    """Listens as the user of `url`, and sends the answers of its functions.

    `answers` maps the public key that signs an answer to the function that gives it. Each question goes to one process
    per key, so that hubs may know different keys for a time. A function that returns None does not answer.
    """

    def __init__(self, url: str, *, name: str, clock: Clock, answers: Mapping[str, Answer]) -> None:
        self._url, self._name, self._clock, self._answers = url, name, clock, dict(answers)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._link: Link | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self.failure = "does not listen yet"
        """Why no question is answered; "" if questions are."""

    async def run(self) -> None:
        """Answer until cancelled; a server that is away is waited for.

        Raises:
            Unavailable: the connection closed permanently.
        """
        self._link = link = await self._opened()
        with unavailable(SUBJECT):
            for key, answer in self._answers.items():
                # A queue group for each key: one of several centrals answers a question, and each key is asked by
                # itself.
                await link.client.subscribe(SUBJECT, queue=f"central-{key}", cb=self._taking(answer))
            # The server must know the subscriptions before `failure` is cleared, because readiness then reports an
            # answer.
            await link.settle()
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

    def _taking(self, answer: Answer) -> Callable[[Msg], Awaitable[None]]:
        async def take(message: Msg) -> None:
            # Dropped without an answer: a refusal would end a login that only came at a bad moment.
            if len(self._under_way) >= WAITING:
                telemetry.REFUSED.labels("central", "login", "too_many").inc()
                return
            task = asyncio.create_task(self._reply(message, answer), name="login")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

        return take

    async def _reply(self, message: Msg, answer: Answer) -> None:
        async with self._room:
            try:
                said = await answer(message.data)
                if said is not None:
                    with cancellable():
                        await message.respond(said)
            except Refused as refusal:  # not a question at all
                log.warning("login.not_understood", why=str(refusal))
            except (SubletError, *FAILURES) as error:
                log.warning("login.not_answered", why=str(error))

    async def close(self) -> None:
        """Stop answering."""
        for task in tuple(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._link is not None:
            await self._link.drain()
