"""Add up counters of members that come and go, such as a cgroup's tasks, if a pass may read only some of them. Pure.

Each member has its own rate, between its own two readings. A pass adds the rates of all members over the time since the
last pass. A member that is read again after many passes therefore does not add their growth to a single one, and
members that are not read now count with their last rate.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from services.metrics.core.figures.values import Point

CARRIED_S = 1.0
"""Growth of a member beyond its possible rate belongs to earlier passes, which could not see it, and is added in the
next ones: at most this much, because old growth should not be reported for long."""


class Member(NamedTuple):
    """A member's last reading, by how much it grew a second up to then, and what is still to be made up for."""

    last: Point
    per_s: float = 0.0
    carried: float = 0.0


@dataclass(frozen=True, slots=True)
class CounterTally:
    """The growth of the members so far, and when it was added up."""

    at_s: float
    total: float = 0.0
    members: Mapping[str, Member] = field(default_factory=dict)


def tallied(
    before: CounterTally, counters: Mapping[str, int], members: Collection[str], now_s: float, most_per_s: float
) -> CounterTally:
    """Return the next tally: `counters` are those of the `members` that were read now.

    A member adds nothing when it is first seen or its counter went back; none grows by more than `most_per_s`, and the
    rest is added in the next passes.
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
