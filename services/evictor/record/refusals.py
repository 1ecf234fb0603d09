"""Records every refusal of a guard in the ledger, so that `explain` can answer after a restart too.

A guard that refuses at every sample is written once at first and then once a minute, with how often it did: a write
waits for the disk.
"""

from typing import Any

import structlog

from services.evictor.core.arbiter.guards import Refusal
from services.evictor.ports import EvictionLedger
from shared.core.evictions.intents import KeptRefusal, passed_s

log = structlog.get_logger()

WRITE_EVERY_S = 60.0
SHOWN = 100
KEEP = 1_000
"""As many as the ledger keeps (`shared.adapters.ledger.upkeep`)."""

Key = tuple[str, str, str]


class RefusalBook:
    """The newest refusal of each pod, plugin and guard; the ledger's copy is at most a minute old."""

    def __init__(self, ledger: EvictionLedger) -> None:
        self._ledger = ledger
        self._kept: dict[Key, KeptRefusal] = {}
        self._unwritten: set[Key] = set()
        self._new = False
        self._written_at_s: float | None = None

    def load(self) -> None:
        """Read the ledger's refusals; those that were noted while it was away stay.

        Raises:
            Unavailable: it cannot be read.
        """
        # The ledger first, and over it what this life has not written yet: those are the newer of the two.
        self._kept = {refusal.key: refusal for refusal in self._ledger.refusals()} | {
            key: refusal for key, refusal in self._kept.items() if key in self._unwritten
        }

    def note(self, plugin: str, refusal: Refusal, now_s: float) -> None:
        """Record the refusal of a guard."""
        fresh = KeptRefusal(refusal.pod, refusal.uid, plugin, refusal.why, refusal.says, 1, now_s, now_s)
        before = self._kept.get(fresh.key)
        if before is None:
            self._new = True
            log.info("eviction.held_back", plugin=plugin, pod=refusal.pod, guard=refusal.why, why=refusal.says)
        self._kept[fresh.key] = fresh if before is None else before.again(refusal.says, now_s)
        self._unwritten.add(fresh.key)

    def write(self, now_s: float, *, all_of_it: bool = False) -> None:
        """Write new refusals at once, and the others with them or a minute after the last write.

        Raises:
            Unavailable: it cannot be written, and remains to be written.
        """
        waited = self._written_at_s is None or passed_s(self._written_at_s, now_s) >= WRITE_EVERY_S
        if not self._unwritten or not (self._new or waited or all_of_it):
            return
        self._ledger.keep_refusals([self._kept[key] for key in sorted(self._unwritten)])
        # Only after the write: where it fails, all of it stays to be written.
        self._unwritten, self._new, self._written_at_s = set(), False, now_s

    def forget(self, now_s: float) -> None:
        """Keep no more than the ledger does."""
        for refusal in self._newest(now_s)[KEEP:]:
            del self._kept[refusal.key]
            self._unwritten.discard(refusal.key)

    def state(self, now_s: float) -> list[dict[str, Any]]:
        """The newest, as JSON values."""
        return [
            {
                "pod": r.pod,
                "uid": r.uid,
                "plugin": r.plugin,
                "guard": r.guard,
                "why": r.why,
                "count": r.count,
                "first_age_s": passed_s(r.first_at_s, now_s),
                "last_age_s": passed_s(r.last_at_s, now_s),
            }
            for r in self._newest(now_s)[:SHOWN]
        ]

    def _newest(self, now_s: float) -> list[KeptRefusal]:
        return sorted(self._kept.values(), key=lambda r: (passed_s(r.last_at_s, now_s), r.pod, r.key))
