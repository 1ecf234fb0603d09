"""`NewestGate` admits the newest of full-state messages, and never one that was seen before."""

from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["new", "stale", "replayed", "retired"]

PERIOD_S = 3.0
"""Longest time between two messages of a live sender, for kinds without another period."""
SILENT_PERIODS = 2.0
"""Periods of silence after which a replaced sender may return: its next message, at most a period later, is then
accepted within three periods."""
TWO_SENDERS_PERIODS = 3.0
_REMEMBERED_BOOTS = 16  # restarts of one sender within the life of a receiver that a late message could come from
_REMEMBERED_RUNS = 8  # of numbers without a gap: each lost message ends one


@dataclass(slots=True)
class _Retired:
    seq: int
    at_s: float
    runs: list[list[int]]
    """What was taken of it."""
    spoke_s: float | None = None
    """When it last sent a new message, if that was longer after its replacement than a message can be in flight."""


@dataclass(slots=True)
class NewestGate:
    """Orders messages by (boot_id, seq): a higher number of the same boot is new; an unknown boot replaces the
    current one.

    A replaced boot is retired: its messages are refused while the current one sends. If the current one has fallen
    silent, and an older one still counts up, the older one was not dead, and is accepted again. Neither a dead sender,
    nor a single message in its name or with an absurd number, can lock out the live one.
    """

    period_s: float = PERIOD_S
    boot_id: str | None = None
    seq: int = -1
    _heard_s: float = 0.0
    _refused_seq: int = -1
    """The last number of the current boot that was refused since one was taken; -1: none. One that counts on from there
    is the living sender's, and the number above it was not."""
    _runs: list[list[int]] = field(default_factory=list)
    """Numbers of the current boot that were taken: first and last of each run without a gap, the newest runs."""
    _retired: dict[str, _Retired] = field(default_factory=dict)

    def judge(self, boot_id: str, seq: int, now_s: float) -> Verdict:
        """Say what a message is, without taking it."""
        silent = now_s - self._heard_s > SILENT_PERIODS * self.period_s
        if boot_id == self.boot_id:
            # The second case: a message with a number out of all reach was taken once. When nothing above it follows, a
            # refused number that counts on from another one is the living sender's. What was taken before is the word
            # of a dead sender again, also where it is above a number that counted on.
            counts = seq > self.seq or (silent and self._counts_on(seq))
            if counts and not self._was_taken(seq):
                return "new"
            return "replayed" if seq == self.seq else "stale"
        past = self._retired.get(boot_id)
        # An unknown boot replaces the current one at once, because a restart must not cost a period of silence.
        return "new" if past is None or (silent and seq > past.seq) else "retired"

    def admit(self, boot_id: str, seq: int, now_s: float) -> Verdict:
        """Judge a message, by the receiver's monotonic clock, and make it the newest when it is new."""
        verdict = self.judge(boot_id, seq, now_s)
        if verdict == "new":
            self._replace(boot_id, seq, now_s)
        elif verdict == "stale":
            self._refused_seq = seq
        elif verdict == "retired":
            self._overhear(self._retired[boot_id], seq, now_s)
        return verdict

    def two_senders(self, now_s: float) -> bool:
        """Return whether a replaced sender is alive next to the current one."""
        within_s = TWO_SENDERS_PERIODS * self.period_s
        spoke = [past.spoke_s for past in self._retired.values() if past.spoke_s is not None]
        return now_s - self._heard_s <= within_s and any(now_s - spoke_s <= within_s for spoke_s in spoke)

    def _counts_on(self, seq: int) -> bool:
        return self._refused_seq >= 0 and self._refused_seq < seq < self.seq

    def _was_taken(self, seq: int) -> bool:
        return any(first <= seq <= last for first, last in self._runs)

    def _note_taken(self, seq: int) -> None:
        if self._runs and seq == self._runs[-1][1] + 1:
            self._runs[-1][1] = seq
        else:
            self._runs = [*self._runs[1 - _REMEMBERED_RUNS :], [seq, seq]]

    def _replace(self, boot_id: str, seq: int, now_s: float) -> None:
        if boot_id != self.boot_id:
            past = self._retired.pop(boot_id, None)
            if self.boot_id is not None:
                self._retired[self.boot_id] = _Retired(self.seq, now_s, self._runs)
            # The oldest goes; dictionaries keep the order in which boots were retired.
            if len(self._retired) > _REMEMBERED_BOOTS:
                del self._retired[next(iter(self._retired))]
            self._runs = [] if past is None else past.runs
        self._note_taken(seq)
        self.boot_id, self.seq, self._heard_s, self._refused_seq = boot_id, seq, now_s, -1

    def _overhear(self, past: _Retired, seq: int, now_s: float) -> None:
        if seq > past.seq:
            past.seq = seq
            # Messages in flight at the change of boots arrive within a period, and are no second sender.
            if now_s - past.at_s > self.period_s:
                past.spoke_s = now_s
