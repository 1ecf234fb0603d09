"""Which message of a stream of full-state messages may be used: the newest, and never one seen before."""

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["new", "stale", "replayed", "retired"]

_REMEMBERED_BOOTS = 16  # restarts of one sender within the life of a receiver that a late message could come from


@dataclass(slots=True)
class NewestGate:
    """Order by (boot_id, seq): a higher number of the same boot is new; an unknown boot replaces the current one.

    A boot that was replaced is retired for good: its late messages are refused (notes/nats-practice.md section 16).
    """

    boot_id: str | None = None
    seq: int = -1
    _retired: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BOOTS))

    def judge(self, boot_id: str, seq: int) -> Verdict:
        """Say what a message is, without taking it."""
        if boot_id in self._retired:
            return "retired"
        if boot_id != self.boot_id:
            return "new"
        if seq == self.seq:
            return "replayed"
        return "new" if seq > self.seq else "stale"

    def take(self, boot_id: str, seq: int) -> Verdict:
        """Judge a message and, when it is new, make it the newest."""
        verdict = self.judge(boot_id, seq)
        if verdict == "new":
            if self.boot_id is not None and boot_id != self.boot_id:
                self._retired.append(self.boot_id)
            self.boot_id, self.seq = boot_id, seq
        return verdict
