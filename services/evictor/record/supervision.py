"""Supervises the ledger: opens it, closes it when it fails, and proves that it works before any pod is evicted
again.

Without a working ledger no pod is evicted, and the health says so.
"""

from collections.abc import Sequence

import structlog

from services.evictor.ports import EvictionLedger
from services.evictor.record.journal import IntentJournal
from services.evictor.record.outbox import Outbox
from services.evictor.record.refusals import RefusalBook
from shared.core.evictions.intents import IntentRecord
from shared.errors import Unavailable
from shared.wire import Wire

log = structlog.get_logger()


class LedgerSupervisor:
    """The ledger with the journal, the outbox and the refusals that stand in it."""

    def __init__(self, ledger: EvictionLedger, wire: Wire) -> None:
        self.ledger, self._clock = ledger, wire.clock
        self.outbox = Outbox(ledger, wire.bus, wire.clock)
        self.journal = IntentJournal(ledger, wire, written=self.outbox.wake)
        self.refusals = RefusalBook(ledger)
        self.closed = "the evictor is starting"
        """Why no pod is evicted at all; "" while the ledger works."""
        self._open = self._for_good = False

    def begin(self) -> None:
        """Open the ledger for the first time; where it cannot be used now, `maintain` tries again.

        Raises:
            Conflict: another evictor has it.
        """
        try:
            self._open_file()
        except Unavailable as error:
            self.lose(error)

    def maintain(self) -> Sequence[IntentRecord]:
        """Open the ledger or prove that it works; gives what is unfinished in it, where it did not work before."""
        # A damaged ledger was moved aside: its running evictions and used budgets are unknown, and only a restart may
        # begin again.
        if self._for_good:
            return ()
        try:
            if not self._open:
                self._open_file()
            # It writes in every case, so this is also the proof that the disk takes writes again.
            self.ledger.prune(self._clock.monotonic())
            if not self.closed or self._for_good:
                return ()
            # The memory may be older than the file, so everything is read again.
            self.closed = ""
            self.journal.load()
            self.refusals.load()
            unfinished = self.ledger.live()
            self.outbox.wake()
        except Unavailable as error:
            self.lose(error)
            return ()
        return unfinished

    def lose(self, error: Unavailable) -> None:
        """Fail closed: no eviction begins or continues until the ledger can be written again."""
        if self.closed != str(error):
            log.error("ledger.unavailable", why=str(error))
        # `maintain` reopens the file, and checks its integrity, before anything continues.
        self.closed, self._open = str(error), False

    def write_refusals(self, now_s: float) -> None:
        """Write what the guards have refused, while the ledger works.

        Raises:
            Unavailable: it does not work.
        """
        if not self.closed:
            self.refusals.write(now_s)

    def close(self) -> None:
        """Write what waits to be written, and release the file."""
        try:
            self.refusals.write(self._clock.monotonic(), all_of_it=True)
        except Unavailable as error:
            log.warning("ledger.refusals_lost", why=str(error))
        finally:
            self.ledger.close()

    def _open_file(self) -> None:
        # Seconds since 1970: higher than any number that a ledger before this one can have given out.
        damage = self.ledger.open(first_episode=int(self._clock.wall().timestamp()))
        self._open = True
        if damage:
            self._for_good, self.closed = True, f"{damage}; nobody is evicted until the evictor starts again"
            log.error("ledger.broken", why=self.closed)
