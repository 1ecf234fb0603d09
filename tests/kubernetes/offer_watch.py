"""What nodes offer beside what is applied on them, look by look."""

import threading
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

LOOK_S, GRANTED_S = 0.25, 0.05

Read = Callable[[], Mapping[str, int]]
"""Milli-cores by node."""


class OfferWatch:
    """What nodes offer beside what the kernel grants to their batch pods, look by look.

    An offer follows what is applied: for a moment one that stands may be above what has just been narrowed. One that is
    written anew was applied when its request was sent. That was after the look before, or it was on its way then: for
    no longer than the longest look took, which asks the same API server. What was granted in between is read from the
    kernel all the time, for a pool may be wide for less than a look takes.
    """

    def __init__(self, read_offers: Read, read_granted: Read, clock: Callable[[], float] = time.monotonic) -> None:
        self._read_offers, self._read_granted, self._clock = read_offers, read_granted, clock
        self.ended = threading.Event()
        self.looks = Counter[str]()
        self.late_s: dict[str, float] = {}
        """How long an offer stood above what was applied."""
        self.faults: list[str] = []
        """Offers that were above it when they were written."""
        self._offers: dict[str, int] = {}
        self._granted: dict[str, list[tuple[float, int]]] = defaultdict(list)
        """By node since when so much was granted, ascending."""
        self._looked_s = clock()
        self._longest_s = 0.0

    def run(self) -> None:
        """Look until the end."""
        while not self.ended.wait(LOOK_S):
            self.look()

    def run_granted(self) -> None:
        """Read what is granted until the end."""
        while not self.ended.wait(GRANTED_S):
            self.note_granted()

    def note_granted(self) -> None:
        """Read once what the kernel grants."""
        now_s = self._clock()
        for name, millis in self._read_granted().items():
            known = self._granted[name]
            if not known or known[-1][1] != millis:
                known.append((now_s, millis))

    def look(self) -> None:
        """Look once at what is offered."""
        begun_s, before_s = self._clock(), self._looked_s
        offers = self._read_offers()
        self.note_granted()
        self._looked_s = begun_s
        self._longest_s = max(self._longest_s, self._clock() - begun_s)
        for name, offer in offers.items():
            if name not in self._granted:
                continue
            self.looks[name] += 1
            if offer > self._granted[name][-1][1]:
                self.late_s[name] = self.late_s.get(name, 0.0) + begun_s - before_s
            granted = self._since(name, before_s - self._longest_s)
            if offer != self._offers.get(name, offer) and offer > max(granted):
                self.faults.append(f"{name}: {offer} millicores offered, {granted} granted one after the other")
            self._offers[name] = offer

    def _since(self, name: str, since_s: float) -> list[int]:
        """What was granted from then on, what was in force then first."""
        known = self._granted[name]
        first = max(0, bisect_right(known, since_s, key=lambda one: one[0]) - 1)
        return [millis for _, millis in known[first:]]

    def said(self) -> str:
        """Lines for the transcript."""
        rows = (
            f"{name}: {self.looks[name]} looks, more was offered than is applied for {self.late_s.get(name, 0):.1f} s"
            for name in sorted(self.looks)
        )
        return "\n".join((*rows, *self.faults))
