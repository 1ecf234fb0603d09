"""When a pressure may lead to an eviction: seen twice in a row, cooled down, and evictions have helped so far.

Figures: notes/reliability.md section 4b (B1, B3, B4).
"""

from dataclasses import dataclass
from typing import Literal

from services.evictor.core.plugin import Pressure, Silence
from shared.core.intents import Record, passed_s

Hold = Literal["not_met", "unconfirmed", "stale_input", "eviction_under_way", "cooling", "ineffective"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The bounds that hold for every plugin."""

    confirm_samples: int = 2
    max_input_age_s: float = 5.0
    cooling_s: float = 15.0
    max_without_relief: int = 3


@dataclass(frozen=True, slots=True)
class Watch:
    """What has been seen of one plugin's pressure."""

    pressure: Pressure | None = None
    in_a_row: int = 0
    seen_at_s: float | None = None

    def see(self, finding: Pressure | Silence, t_s: float, rules: Rules) -> "Watch":
        """One more sample. Another scope, a step from soft to hard, a silence, or too long a gap starts a new row."""
        if not isinstance(finding, Pressure):
            return Watch(None, 0, t_s)
        gap = self.seen_at_s is None or passed_s(self.seen_at_s, t_s) > rules.max_input_age_s
        before = self.pressure
        same = before is not None and not gap and before.scope == finding.scope and before.hard >= finding.hard
        return Watch(finding, self.in_a_row + 1 if same else 1, t_s)

    def holds(self, now_s: float, rules: Rules, record: Record, *, under_way: bool) -> Hold | None:
        """Why nobody is evicted for this pressure now; None when one pod may be."""
        if self.pressure is None or self.seen_at_s is None:
            return "not_met"
        if passed_s(self.seen_at_s, now_s) > rules.max_input_age_s:
            return "stale_input"
        if self.in_a_row < rules.confirm_samples:
            return "unconfirmed"
        if under_way:
            return "eviction_under_way"
        if record.without_relief >= rules.max_without_relief:
            return "ineffective"
        if record.last_at_s is not None and passed_s(record.last_at_s, now_s) < rules.cooling_s:
            return "cooling"
        return None


def relieved(record: Record, finding: Pressure | Silence) -> Record:
    """Only fresh input without pressure is relief; silence is not."""
    return record.after_relief() if finding == "calm" and record.without_relief else record
