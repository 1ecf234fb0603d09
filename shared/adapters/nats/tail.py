"""`tail` reads a stream in order without end: if a reader breaks, a new one continues after its last message."""

from collections.abc import AsyncIterator

import structlog
from nats.js.errors import NotFoundError

from shared.adapters.nats.direct import DirectReader, has_no_consumers
from shared.adapters.nats.link import Link
from shared.adapters.nats.reader import Broken, OrderedReader, not_found_or_unavailable
from shared.core.backoff import delay_s
from shared.errors import Unavailable
from shared.ports import Received

log = structlog.get_logger()

REOPEN_BASE_S, REOPEN_CAP_S = 0.05, 1.0


async def tail(
    link: Link, stream: str, subject: str, *, start: int = 1, last_per_subject: bool = False
) -> AsyncIterator[Received]:
    """Yield everything from a sequence on (or the last of each subject), then live messages; each once, in order.

    A lost connection, a restarted server or a stream that does not exist yet only cause a delay.

    Raises:
        Unavailable: the client is closed permanently.
    """
    position, attempt = _Position(start), 0
    while not link.closed:
        try:
            await position.check(link, stream)
            reader = await opened(link, stream, subject, start=position.next, last_per_subject=last_per_subject)
            try:
                while True:
                    received, _ = await reader.next()
                    # Only a message resets the pause: a reader that opens well and breaks at once must not be opened in
                    # a tight loop.
                    attempt = 0
                    # A new reader of `last_per_subject` begins with messages that were handed out before.
                    if position.advance(received.sequence):
                        yield received
            finally:
                await reader.close()
        except NotFoundError:
            log.debug("stream.awaited", stream=stream)
        except (Broken, Unavailable) as error:
            log.debug("stream.reopened", stream=stream, at=position.next, why=str(error))
        await link.clock.sleep(delay_s(attempt, base_s=REOPEN_BASE_S, cap_s=REOPEN_CAP_S, roll=0.5))
        attempt += 1
    raise Unavailable(f"stream {stream}: the bus client is closed", reason="closed")


async def opened(
    link: Link, stream: str, subject: str, *, start: int = 1, last_per_subject: bool
) -> OrderedReader | DirectReader:
    """A reader of the kind that the login may have.

    Raises:
        NotFoundError: the stream does not exist.
        Broken, Unavailable: the stream cannot be read now.
    """
    # `DirectReader` reads from a sequence on, and cannot tell which message is the last of its subject.
    if not last_per_subject and await has_no_consumers(link):
        return await DirectReader.open(link, stream, subject, start=start)
    return await OrderedReader.open(link, stream, subject, start=start, last_per_subject=last_per_subject)


class _Position:
    """The next sequence to hand out."""

    def __init__(self, start: int) -> None:
        self.next = max(1, start)
        self._seen = False

    def advance(self, sequence: int) -> bool:
        if sequence < self.next:
            return False
        self.next, self._seen = sequence + 1, True
        return True

    async def check(self, link: Link, stream: str) -> None:
        """Notice a recreated stream, which ends before what was already seen, and start again at its beginning."""
        if not self._seen:
            return
        with not_found_or_unavailable(f"stream {stream}"):
            state = (await link.js.stream_info(stream)).state
        if state.last_seq + 1 < self.next:
            log.warning("stream.made_anew", stream=stream, seen=self.next - 1, last=state.last_seq)
            self.next, self._seen = 1, False
