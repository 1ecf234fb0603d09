"""Stores an intent after the last one for its pod: of two concurrent writers, the stream refuses one.

Facts: docs/facts/nats.md#publishing-facts.
"""

from collections.abc import Callable

from shared.contracts.bus.subjects import INTENTS_STREAM
from shared.core.evictions.intents import Outgoing
from shared.errors import Conflict, IdTaken
from shared.evictions.messages import Rename
from shared.ports import Bus, DurableMessage, Received


class IntentStream:
    """The stream of intents, as one writer appends to it."""

    def __init__(self, bus: Bus, rename: Rename, yields_to: Callable[[Received], bool]) -> None:
        """`yields_to`: whether an intent that another writer has stored meanwhile takes precedence."""
        self._bus, self._rename, self._yields_to = bus, rename, yields_to

    async def last(self, subject: str) -> Received | None:
        """Return the newest intent for a pod; None: there is none.

        Raises:
            Unavailable: the stream cannot be read now.
        """
        received = await self._bus.replay(INTENTS_STREAM, subject, last_per_subject=True)
        return received[-1] if received else None

    async def append(self, message: Outgoing, *, after: int, budget_s: float) -> int:
        """Store an intent after sequence `after` of its subject, 0 for none; return its own sequence.

        Raises:
            Conflict: another intent takes precedence.
            Unavailable: it could not be stored, or the stream could not be read.
        """
        while True:
            sent = DurableMessage(message.subject, message.body, message.msg_id, message.headers, after)
            try:
                stored = await self._bus.publish_durable(sent, budget_s=budget_s)
            # Another message bears this id, so the stream took ours for its repetition and dropped it.
            except IdTaken as error:
                message = self._rename(message, error)
            except Conflict:
                last = await self.last(message.subject)
                if last is None:
                    continue
                if self._yields_to(last):
                    raise
                # The existing intent is over or invalid: publish again, after it.
                after = last.sequence
            else:
                return stored.sequence
