"""Add up counters of members that come and go, such as a cgroup's tasks, where a pass may read only some of them. Pure.

Each member has a rate of its own, between its own two readings. A pass adds the rates of all members over the time
since the last pass: so one that was read again after many passes does not bring their growth into a single one, and
members that are not read now count by what they did last.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from services.metrics.core.figures.values import Point

CARRIED_S = 1.0
"""What a member grew by beyond what it can is of earlier passes, which could not see it yet, and is made up for in the
next ones: so much at most, for nobody wants to hear for long of what is over."""


class Member(NamedTuple):
    """A member's last reading, by how much it grew a second up to then, and what is still to be made up for."""

    last: Point
    per_s: float = 0.0
    carried: float = 0.0


@dataclass(frozen=True, slots=True)
class CounterTally:
    """What the members have grown by so far, and when that was added up."""

    at_s: float
    total: float = 0.0
    members: Mapping[str, Member] = field(default_factory=dict)


def tallied(
    before: CounterTally, counters: Mapping[str, int], members: Collection[str], now_s: float, most_per_s: float
) -> CounterTally:
    """The tally once more: `counters` are those of the `members` that were read now.

    A member that is seen for the first time adds nothing until it is read again, nor does one that went back; none
    grows by more than `most_per_s`: the rest is made up for in the next passes.
    """
    known = before.members
    seen = {name: known[name] for name in members if name in known}
    seen |= {name: _read_again(known.get(name), Point(value, now_s), most_per_s) for name, value in counters.items()}
    per_s = sum(member.per_s for member in seen.values())
    return CounterTally(now_s, before.total + per_s * max(0.0, now_s - before.at_s), seen)


def _read_again(before: Member | None, now: Point, most_per_s: float) -> Member:
    if before is None:
        return Member(now)
    span_s, growth = now.at_s - before.last.at_s, now.value - before.last.value
    # Twice in one moment: what it grew by is seen the next time.
    if span_s == 0:
        return before
    if span_s < 0 or growth < 0:
        return Member(now)
    growth += before.carried
    per_s = min(most_per_s, growth / span_s)
    return Member(now, per_s, max(0.0, min(growth - per_s * span_s, most_per_s * CARRIED_S)))
