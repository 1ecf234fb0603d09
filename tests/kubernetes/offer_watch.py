"""What nodes offer beside what is applied on them, look by look."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping

LOOK_S = 0.25


class OfferWatch:
    """What nodes offer beside what the kernel grants to their batch pods, look by look.

    An offer follows what is applied: for a moment one that stands may be above what has just been narrowed. One that is
    written anew never is.
    """

    def __init__(self, read: Callable[[], Mapping[str, tuple[int, int]]]) -> None:
        self._read = read
        self.ended = threading.Event()
        self.looks = Counter[str]()
        self.late_s: dict[str, float] = {}
        """How long an offer stood above what was applied."""
        self.faults: list[str] = []
        """Offers that were above it when they were written."""
        self._before: dict[str, tuple[int, int]] = {}

    def run(self) -> None:
        """Look until the end."""
        before_s = time.monotonic()
        while not self.ended.wait(LOOK_S):
            now_s = time.monotonic()
            self.look(now_s - before_s)
            before_s = now_s

    def look(self, since_s: float) -> None:
        """Look once, so many seconds after the last time."""
        for name, (offer, granted) in self._read().items():
            self.looks[name] += 1
            offered_before, granted_before = self._before.get(name, (offer, granted))
            if offer > granted:
                self.late_s[name] = self.late_s.get(name, 0.0) + since_s
            if offer != offered_before and offer > max(granted, granted_before):
                self.faults.append(f"{name}: {offer} millicores offered, {granted_before} and {granted} granted")
            self._before[name] = (offer, granted)

    def said(self) -> str:
        """Lines for the transcript."""
        rows = (
            f"{name}: {self.looks[name]} looks, more was offered than is applied for {self.late_s.get(name, 0):.1f} s"
            for name in sorted(self.looks)
        )
        return "\n".join((*rows, *self.faults))
