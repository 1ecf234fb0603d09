"""Reads from a NodeMetric's spec how it is collected; wrong values are named, whoever wrote them.

Facts: docs/facts/koordinator-node-metric.md#spec.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from shared.core.text.durations import NS_PER_S, duration_ns
from shared.errors import Refused

MemoryCollectPolicy = Literal["usageWithoutPageCache", "usageWithPageCache", "usageWithHotPageCache"]

KnownMemoryPolicy = Literal["usageWithoutPageCache", "usageWithPageCache"]
"""Those that need nothing of the kernel that it may lack."""

LEAST_AGGREGATE_S, LEAST_REPORT_S, LEAST_WINDOW_S = 60, 30, 60
MOST_S = 3600
"""Longest window, so that the stored past is bounded."""
MOST_WINDOWS = 8
SAID_CHARACTERS = 60
"""Most characters of a wrong value that are reported."""
WHERE = "spec.metricCollectPolicy"


@dataclass(frozen=True, slots=True)
class CollectPolicy:
    """Over how long uses are averaged, how often they are written, and which windows have percentiles."""

    aggregate_s: int = 300
    report_s: int = 60
    windows_s: tuple[int, ...] = (300, 600, 1800)
    memory: MemoryCollectPolicy = "usageWithoutPageCache"
    unread: tuple[str, ...] = ()
    """Parts of the spec that are not followed, and what is done instead."""

    @property
    def longest_s(self) -> int:
        """Return how long the node's use is kept."""
        return max((self.aggregate_s, *self.windows_s))

    @property
    def collected(self) -> tuple[object, ...]:
        """Return the part that decides how samples are kept; if it changes, stored samples are useless."""
        return self.aggregate_s, self.windows_s, self.memory


def collect_policy(node_metric: Mapping[str, Any], default: CollectPolicy = CollectPolicy()) -> CollectPolicy:
    """Of a NodeMetric; what it leaves out, and what cannot be read, is as by default."""
    unread: list[str] = []
    given = _map(_map(node_metric.get("spec"), "spec", unread).get("metricCollectPolicy"), WHERE, unread)
    aggregated = _map(given.get("nodeAggregatePolicy"), f"{WHERE}.nodeAggregatePolicy", unread)
    return CollectPolicy(
        _seconds(given, "aggregateDurationSeconds", LEAST_AGGREGATE_S, default.aggregate_s, unread),
        _seconds(given, "reportIntervalSeconds", LEAST_REPORT_S, default.report_s, unread),
        _windows(aggregated.get("durations"), default.windows_s, unread),
        _memory(given.get("nodeMemoryCollectPolicy"), default.memory, unread),
        tuple(unread),
    )


def _map(given: object, where: str, unread: list[str]) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        unread.append(f"{where} is {_said(given)}: want an object; the defaults are taken")
    return given if isinstance(given, Mapping) else {}


def _seconds(given: Mapping[str, Any], key: str, least: int, default: int, unread: list[str]) -> int:
    value = given.get(key)
    if value is None:
        return default
    # true is a number in Python.
    if not isinstance(value, int) or isinstance(value, bool):
        unread.append(f"{WHERE}.{key} is {_said(value)}: {default} is taken; write {least} to {MOST_S}")
        return default
    taken = min(max(value, least), MOST_S)
    if taken != value:
        unread.append(f"{WHERE}.{key} is {_said(value)}: {taken} is taken; write {least} to {MOST_S}")
    return taken


def _windows(given: object, default: tuple[int, ...], unread: list[str]) -> tuple[int, ...]:
    where = f"{WHERE}.nodeAggregatePolicy.durations"
    if given is None:
        return default
    if not isinstance(given, list):
        unread.append(f"{where} is {_said(given)}: want a list such as [5m, 10m]; the defaults are taken")
        return default
    if len(given) > MOST_WINDOWS:
        unread.append(f"{where} has {len(given)} entries: the first {MOST_WINDOWS} are taken")
    found: set[int] = set()
    for value in given[:MOST_WINDOWS]:
        seconds = _window_s(value)
        if seconds is None or not LEAST_WINDOW_S <= seconds <= MOST_S:
            unread.append(f"{where}: {_said(value)} is left out; write 1m to 1h, in whole seconds")
        else:
            found.add(seconds)
    return tuple(sorted(found))


def _window_s(value: object) -> int | None:
    try:
        # A span of the API has no more than some twenty characters.
        seconds, rest = divmod(duration_ns(value[:64]), NS_PER_S) if isinstance(value, str) else (0, 1)
    except Refused:
        return None
    return None if rest else seconds


def _memory(given: object, default: MemoryCollectPolicy, unread: list[str]) -> MemoryCollectPolicy:
    if given is None:
        return default
    where = f"{WHERE}.nodeMemoryCollectPolicy"
    found = next((policy for policy in get_args(MemoryCollectPolicy) if policy == given), None)
    if found == "usageWithHotPageCache":
        unread.append(f"{where} is {found}: needs a kernel that counts cold pages; {default} is taken")
        return default
    if found is None:
        unread.append(f"{where} is {_said(given)}: {default} is taken; write one of {_names()}")
    return found or default


def _names() -> str:
    return ", ".join(get_args(MemoryCollectPolicy))


def _said(value: object) -> str:
    """Return a value as text. A number with too many digits is not printed, because Python refuses it at some
    length."""
    if isinstance(value, int) and abs(value) > 1 << 63:
        return "a number beyond 64 bits"
    if isinstance(value, (str, int, float)):
        return repr(value[:SAID_CHARACTERS] if isinstance(value, str) else value)
    return type(value).__name__
