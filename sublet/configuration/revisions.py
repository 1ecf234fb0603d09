"""The revisions of the configuration in the bucket: each with its document, its time and its publisher."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.bus.subjects import CONFIG_BUCKET, CONFIG_STREAM, GLOBAL_CONFIG_KEY, PUBLISHED_AT, PUBLISHED_BY
from shared.errors import Refused
from shared.ports import Bus, Received
from sublet.ask import read_answer
from sublet.configuration.difference import Difference
from sublet.exit_codes import NO_SUCH_OBJECT
from sublet.output import columns, printable

_HEADER_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Revision:
    """One published configuration; `document` is None where it cannot be read, or was deleted."""

    number: int
    document: Mapping[str, Any] | None
    at: str = ""
    by: str = ""

    def row(self) -> dict[str, Any]:
        """For machines."""
        return {"revision": self.number, "at": self.at, "by": self.by, "configuration": self.document}


NOTHING = Revision(0, {})
"""Before anything was published."""


async def read_revisions(bus: Bus) -> list[Revision]:
    """All that the bucket keeps of the configuration of all nodes, the newest last.

    Raises:
        Unavailable: the bucket cannot be read now, or not with this login.
    """
    return [_revision(one) for one in await bus.replay(CONFIG_STREAM, f"$KV.{CONFIG_BUCKET}.{GLOBAL_CONFIG_KEY}")]


async def read_in_force(bus: Bus) -> Revision:
    """The newest one; `NOTHING` where there is none.

    Raises:
        Unavailable: the bucket cannot be read now.
    """
    entry = await bus.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
    if entry is None or entry.value is None:
        return NOTHING
    return Revision(entry.revision, read_answer(entry.value))


def revisions_table(revisions: Sequence[Revision], *, wide: bool) -> str:
    """Revisions as a table; `wide`: how many values each sets."""
    header = ("REVISION", "AT", "BY", "SECTIONS")
    rows = [
        (str(one.number), one.at, one.by, ", ".join(one.document or ()), *([_values_of(one)] if wide else ()))
        for one in revisions
    ]
    return columns((*header, "VALUES") if wide else header, rows)


def _values_of(one: Revision) -> str:
    return "" if one.document is None else str(len(Difference({}, one.document).rows()))


def find_revision(revisions: Sequence[Revision], number: int) -> Mapping[str, Any]:
    """The document of a revision.

    Raises:
        Refused: it is not kept, or cannot be read.
    """
    found = next((one for one in revisions if one.number == number), None)
    if found is None:
        kept = ", ".join(str(one.number) for one in revisions) or "none"
        raise Refused(f"revision {number} is not kept; kept are: {kept}", reason=NO_SUCH_OBJECT)
    if found.document is None:
        raise Refused(f"revision {number} holds no configuration that can be read", reason="unreadable")
    return found.document


def _revision(received: Received) -> Revision:
    at, by = (printable(received.headers.get(name, ""))[:_HEADER_CHARACTERS] for name in (PUBLISHED_AT, PUBLISHED_BY))
    return Revision(received.sequence, read_answer(received.data), at, by)
