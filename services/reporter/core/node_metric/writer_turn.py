"""Decides before each report whether this node writes its NodeMetric: any other writer takes precedence.

Two writers would overwrite each other forever, and readers would see figures jump. This node therefore waits as soon as
the status is not what it wrote, and resumes when there was no other write for some periods. If the other writer returns
soon, the next wait is twice as long, up to an hour, so turns stay rare. A writer that writes once a day causes only a
short wait each time.

Facts: docs/facts/koordinator-node-metric.md#who-writes-it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.core.object_reader import uid_of
from shared.core.text.durations import NS_PER_S, moment_ns
from shared.errors import Refused

QUIET_PERIODS = 3
"""Of the first wait: with periods of 60 s the figures are renewed before a scheduler takes them for expired (300 s)."""
LONGEST_WAIT_S = 3600.0
"""Of a wait that was doubled: while this node waits for somebody who has gone, readers see old figures."""
SOON_WAITS = 2
"""A write by another within this multiple of the last wait counts as soon: the next wait is longer."""
MOST_MANAGERS, NAME_CHARACTERS = 64, 60
MOMENT_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class ReportTime:
    """When a report is due, by both clocks, and the length of a period."""

    now_s: float
    wall: datetime
    period_s: float


class WriterTurn:
    """Remembers the status that this node wrote, and since when another writer has been active."""

    def __init__(self, manager: str) -> None:
        """`manager`: the field manager of this node's own writes."""
        self._manager = manager
        self._left: tuple[str, str | None] | None = None
        self._theirs: tuple[str, str | None] | None = None
        self._before: tuple[str, str | None] | None = None
        self._unanswered = False
        self._since_s = self._began_s = self._least_s = 0.0
        self.wait_s = 0.0
        """How long no other write may occur before this node resumes."""
        self.left_s = 0.0
        """How much of that is left, when last asked."""
        self.other = ""
        """The field manager that writes it instead; "" while this node does."""

    def began_write(self) -> None:
        """A write is sent: until its answer comes, what stood before it may stand there, or what it wrote."""
        self._unanswered = True

    def wrote(self, answer: Mapping[str, Any]) -> None:
        """The object as this node has left it."""
        self._left, self._before, self._unanswered = _standing(answer), None, False

    def is_ours(self, document: Mapping[str, Any], time: ReportTime) -> bool:
        """Return whether this node may write, given the current object."""
        found = _standing(document)
        if self._theirs is None:
            since_s = self._others_since_s(document, found, time)
            if since_s is None:
                self._before = found
                return True
            soon = time.now_s - self._began_s < SOON_WAITS * self.wait_s
            self._least_s = min(2 * self.wait_s, LONGEST_WAIT_S) if soon else 0.0
            self._meet(document, found, since_s)
        elif found != self._theirs:
            self._meet(document, found, time.now_s)
        self.wait_s = max(QUIET_PERIODS * time.period_s, self._least_s)
        self.left_s = self._since_s + self.wait_s - time.now_s
        if self.left_s > 0:
            return False
        self._theirs, self.other = None, ""
        self._before, self._began_s = found, time.now_s
        return True

    def _meet(self, document: Mapping[str, Any], found: tuple[str, str | None], since_s: float) -> None:
        self._theirs, self._since_s = found, since_s
        self.other = next(iter(last_writers(document)), "") or "unknown"

    def _others_since_s(
        self, document: Mapping[str, Any], found: tuple[str, str | None], time: ReportTime
    ) -> float | None:
        """Return since when the status is another writer's; None if it is this node's, or nobody's."""
        # Unchanged since this node got its turn or wrote it: no other write since.
        if found in (self._before, self._left):
            return None
        status, written_here = document.get("status"), self._manager in last_writers(document)
        # An object with another UID was recreated: treat it as seen for the first time.
        if self._left is not None and self._left[0] == found[0]:
            return None if self._unanswered and written_here else time.now_s
        if not status or written_here:
            return None
        # A former writer may have ended long ago: what it has left needs no wait.
        return time.now_s - _age_s(status, time.wall)


def last_writers(document: Mapping[str, Any]) -> list[str]:
    """Return the field managers that own `status.updateTime`, which every writer of a status sets; [] if unknown."""
    meta = document.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, Mapping) else None
    return sorted(set(_owners(entries[:MOST_MANAGERS]))) if isinstance(entries, list) else []


def _owners(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        fields = entry.get("fieldsV1") if isinstance(entry, Mapping) else None
        status = fields.get("f:status") if isinstance(fields, Mapping) else None
        name = entry.get("manager") if isinstance(status, Mapping) and "f:updateTime" in status else None
        if isinstance(name, str) and name:
            yield name[:NAME_CHARACTERS]


def _standing(document: Mapping[str, Any]) -> tuple[str, str | None]:
    """UID and status, as text that can be compared; None for a status that is none."""
    try:
        return uid_of(document), json.dumps(document.get("status"), sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return uid_of(document), None


def _age_s(status: object, wall: datetime) -> float:
    """By its `updateTime`; 0 where that cannot be read, or is yet to come."""
    said = status.get("updateTime") if isinstance(status, Mapping) else None
    try:
        written_s = moment_ns(said[:MOMENT_CHARACTERS]) / NS_PER_S if isinstance(said, str) else wall.timestamp()
    except Refused:
        return 0.0
    return max(0.0, wall.timestamp() - written_s)
