"""Confirms a pressure before it may evict: seen in a row, cooled down, and evictions have helped so far.

Figures: docs/facts/safety-rules.md#bounds-of-eviction.
"""

import math
from dataclasses import dataclass
from typing import Literal

from services.evictor.core.plugin import Pressure, Silence
from shared.core.evictions.intents import Record, passed_s

Evidence = Literal["for", "against", "missing"]
"""What the newest sample says about a pressure right before the eviction; missing: it is too old, or has no figure."""
HoldReason = Literal["not_met", "unconfirmed", "stale_input", "eviction_under_way", "cooling", "ineffective"]


@dataclass(frozen=True, slots=True)
class ConfirmationRules:
    """The bounds that hold for every plugin."""

    confirm_samples: int = 2
    max_input_age_s: float = 5.0
    cooling_s: float = 15.0
    max_without_relief: int = 3
    met_for_s: float = 0.0
    """A plugin's own: docs/facts/katalyst-eviction.md#the-round, step 2."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The history of one plugin's pressure up to the newest sample."""

    pressure: Pressure | None = None
    in_a_row: int = 0
    seen_at_s: float | None = None
    since_s: float | None = None
    """When the row began."""

    def observe(self, finding: Pressure | Silence, t_s: float, rules: ConfirmationRules) -> "Confirmation":
        """Count one sample. Another scope, a step from soft to hard, a silence, or too long a gap starts a new row."""
        if not isinstance(finding, Pressure):
            # `seen_at_s` stays: a calm sample is fresh evidence too, against.
            return Confirmation(None, 0, t_s)
        # Two samples with a long silence between them are not consecutive, because the time in between is unknown.
        gap = self.seen_at_s is None or passed_s(self.seen_at_s, t_s) > rules.max_input_age_s
        before = self.pressure
        # From hard to soft the row continues, because what was confirmed has only eased. From soft to hard it restarts.
        same = before is not None and not gap and before.scope == finding.scope and before.hard >= finding.hard
        if not same:
            return Confirmation(finding, 1, t_s, t_s)
        return Confirmation(finding, self.in_a_row + 1, t_s, self.since_s)

    def hold_reason(
        self, now_s: float, rules: ConfirmationRules, record: Record, *, under_way: bool
    ) -> HoldReason | None:
        """Return why no pod is evicted for this pressure now; None if one may be."""
        if self.pressure is None or self.seen_at_s is None:
            return "not_met"
        if passed_s(self.seen_at_s, now_s) > rules.max_input_age_s:
            return "stale_input"
        # Both: many quick samples are no long pressure, and two far apart are no row.
        if self.in_a_row < rules.confirm_samples or self.met_for_s(now_s) < rules.met_for_s:
            return "unconfirmed"
        if under_way:
            return "eviction_under_way"
        # Before cooling, because it lasts longer and tells an operator what to do.
        if record.without_relief >= rules.max_without_relief:
            return "ineffective"
        if cooling_left_s(record, now_s, rules) > 0:
            return "cooling"
        return None

    def met_for_s(self, now_s: float) -> float:
        """For how long the pressure has certainly been there, in seconds."""
        return 0.0 if self.since_s is None else passed_s(self.since_s, now_s)


def relieved(record: Record, finding: Pressure | Silence) -> Record:
    """The record after this finding: only fresh input without pressure is relief; a missing figure is not."""
    return record.after_relief() if finding == "calm" and record.without_relief else record


def hold_text(hold: HoldReason, seen: Confirmation, now_s: float, rules: ConfirmationRules, record: Record) -> str:
    """The reason for holding back as a sentence with its numbers."""
    match hold:
        case "not_met":
            return "no pressure"
        case "stale_input":
            age_s = passed_s(seen.seen_at_s or 0.0, now_s)
            return f"the newest sample is {age_s:.1f} s old; the bound is {rules.max_input_age_s:g} s"
        case "unconfirmed":
            counted = f"seen in {seen.in_a_row} of the {rules.confirm_samples} samples in a row that it takes"
            wanted_s = rules.met_for_s
            return f"{counted}, for {seen.met_for_s(now_s):.0f} of {wanted_s:g} s" if wanted_s > 0 else counted
        case "eviction_under_way":
            return "an eviction for this pressure is under way; the next is judged by what it brings"
        case "ineffective":
            return (
                f"{record.without_relief} rounds of evictions brought no relief; the bound is"
                f" {rules.max_without_relief}; again once the pressure has gone"
            )
        case "cooling":
            since_s, left_s = passed_s(record.last_at_s or 0.0, now_s), cooling_left_s(record, now_s, rules)
            return (
                f"the last eviction ended {since_s:.0f} s ago; the next may begin in {math.ceil(left_s)} s"
                f" (cooling {rules.cooling_s:g} s)"
            )


def cooling_left_s(record: Record, now_s: float, rules: ConfirmationRules) -> float:
    """Return the seconds until the next eviction may begin; 0: at once."""
    return 0.0 if record.last_at_s is None else max(0.0, rules.cooling_s - passed_s(record.last_at_s, now_s))
