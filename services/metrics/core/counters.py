"""Parse the output of `perf stat`: cycles and instructions by cgroup, or why there are none. Pure.

The lines come from outside: each is bounded before it is parsed, an unreadable one is left out, and so is a cgroup that
was not requested. The meaning of perf's words: docs/facts/linux-cpu.md#performance-counters.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from shared.core.text.json_text import read_json_object
from shared.errors import Refused

EVENTS = ("cycles", "instructions")
MOST_GROUPS = 256
"""Most cgroups in one window: the kernel keeps two counters of each on every CPU."""
MOST_BYTES = 1 << 20
"""Most bytes of output of one window: two lines a cgroup, four on a machine with two kinds of cores."""
_MOST_LINE_BYTES, _MOST_LINES, _MOST_WORDS = 4096, 8 * MOST_GROUPS, 160
_EVENT = re.compile(r"(?:[\w-]+/)?([\w-]+?)/?(?::\w*)?")
"""An event is "cpu_core/cycles/" on a machine with two kinds of cores, and "cycles:u" without those of the kernel."""
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{0,9})?")
_PLAIN = re.compile(r"[\w.:@/-]{1,512}", re.ASCII)
_NOT_COUNTED, _NOT_SUPPORTED = "<not counted>", "<not supported>"

Words = tuple[str, ...]
_LACKS: Words = ("not supported",)
_GONE: Words = ("no access to cgroup",)
_HEADINGS: Words = ("", "Error:")
_FORBIDDEN: Words = ("perf_event_paranoid", "permission", "not permitted")
INSTEAD = "or set metrics.perf.enabled: false"
NO_COUNTERS = (
    f"this machine counts no {' and '.join(EVENTS)}, as most virtual machines: give it a virtual PMU, {INSTEAD}"
)
NO_PROGRAM = f"there is no program perf: install linux-perf (in an image: --build-arg PERF=linux-perf), {INSTEAD}"
NOT_ALLOWED = (
    "perf may not count: kernel.perf_event_paranoid of this machine wants CAP_PERFMON (Linux 5.8; the chart gives it "
    f"with settings.metrics.perf.enabled), {INSTEAD}"
)
NO_V2 = f"counters by cgroup take cgroup v2, and this machine has v1: boot it with v2, {INSTEAD}"
NO_MACHINE = f"the simulated machine has no performance counters: leave them out, {INSTEAD}"


class Counts(NamedTuple):
    """Counts of the tasks of a cgroup and of the cgroups below it, in one window."""

    cycles: float
    instructions: float

    def plus(self, other: "Counts") -> "Counts":
        """Return the sum of both."""
        return Counts(self.cycles + other.cycles, self.instructions + other.instructions)


NOTHING = Counts(0.0, 0.0)


class Failure(NamedTuple):
    """Why a window has no counts. `lasts`: the next window would fail as well. `gone`: a cgroup was removed."""

    why: str
    lasts: bool = False
    gone: bool = False


def countable(group: str) -> bool:
    """Return whether perf takes the name of a cgroup literally: a comma separates names, a bracket starts a pattern."""
    return _PLAIN.fullmatch(group) is not None


def counts_by_group(
    text: str, groups: Collection[str], events: tuple[str, str] = EVENTS
) -> dict[str, Counts] | Failure:  # fmt: skip
    """Return the counts of each requested cgroup, and their sums for the cgroups above.

    A cgroup is left out if its tasks ran and one of the two counts is unknown.
    """
    found: dict[str, dict[str, float | None]] = {}
    lacking = False
    for row in _rows(text):
        group, event = row.get("cgroup"), _event(row.get("event"))
        if event not in events or not isinstance(group, str) or group not in groups:
            continue
        lacking = lacking or row.get("counter-value") == _NOT_SUPPORTED
        own, value = found.setdefault(group, {}), _value(row)
        known = own.get(event, 0.0)
        own[event] = None if known is None or value is None else known + value
    if lacking:
        return Failure(NO_COUNTERS, lasts=True)
    cycles, instructions = events
    counted = {
        group: Counts(first, second)
        for group, own in found.items()
        if (first := own.get(cycles)) is not None and (second := own.get(instructions)) is not None
    }
    if groups and not counted:
        return Failure("perf told nothing of any cgroup that it was to count")
    return _with_sums(counted)


def failure_of(complaint: str, *, has_counted: bool = False) -> Failure:
    """Return why perf failed, from its error output; `has_counted`: these events were counted here before."""
    words = complaint.lower()
    lacks = any(word in words for word in _LACKS)
    # Of a cgroup that ends after perf has opened it, perf says that the event is not supported: the kernel's answer is
    # the same. A machine that has counted the event does not lack it.
    if any(word in words for word in _GONE) or (lacks and has_counted):
        return Failure("cgroups end before they can be counted", gone=True)
    if lacks:
        return Failure(NO_COUNTERS, lasts=True)
    if any(word in words for word in _FORBIDDEN):
        return Failure(NOT_ALLOWED, lasts=True)
    line = next((line for line in complaint.splitlines() if line.strip() not in _HEADINGS), "it ended without a word")
    shown = "".join(sign if sign.isprintable() else "?" for sign in line.strip()[:_MOST_WORDS])
    return Failure(f"perf: {shown}; see what `perf stat -a sleep 1` says there, {INSTEAD}", lasts=True)


def _rows(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines()[:_MOST_LINES]:
        try:
            yield read_json_object(line, what="perf", max_bytes=_MOST_LINE_BYTES)
        except Refused:
            continue


def _event(told: object) -> str:
    name = _EVENT.fullmatch(told) if isinstance(told, str) else None
    return name[1] if name else ""


def _value(row: Mapping[str, Any]) -> float | None:
    told = row.get("counter-value")
    if told == _NOT_COUNTED:
        # Enabled for no time: no task of the group ran, so the count is 0. Otherwise no counter was free: unknown.
        idle = row.get("event-runtime") == 0 and row.get("pcnt-running") == 100
        return 0.0 if idle else None
    return float(told) if isinstance(told, str) and _NUMBER.fullmatch(told) else None


def _with_sums(counted: Mapping[str, Counts]) -> dict[str, Counts]:
    # The counts of a counted cgroup already include those of the cgroups below it.
    sums = dict(counted)
    for group, own in sorted(counted.items()):
        above = group
        while "/" in above:
            above = above.rpartition("/")[0]
            if above in counted:
                break
            sums[above] = sums.get(above, NOTHING).plus(own)
    return sums
