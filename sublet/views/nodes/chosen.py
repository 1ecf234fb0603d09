"""Which of a cluster's nodes are shown, and in which order; and, for a watch, which of them have changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import Refused
from sublet.cluster.reading import ClusterReading
from sublet.exit_codes import NO_SUCH_OBJECT
from sublet.views.cluster.table import is_well, node_lines, node_rows

Row = Mapping[str, Any]
SORTS: Mapping[str, tuple[str, bool]] = {
    "name": ("node", False), "cpu": ("reclaimed_cpu_millis", True), "memory": ("reclaimed_memory_bytes", True),
    "agent": ("agent", False), "version": ("version", False), "said": ("said_at", False), "pool": ("pool", False),
    "zone": ("zone", False),
}  # fmt: skip
"""By the word that is typed the field of a row, and whether the largest comes first."""
UNSEEN = ("said_at",)
"""Fields that change all the time, and are no change that a watch tells."""


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """What was asked for. No name is every node."""

    names: tuple[str, ...] = ()
    admits: Callable[[Mapping[str, str]], bool] = lambda _labels: True
    """Whether a node with these labels is meant."""
    not_ready: bool = False
    """Only nodes that are not well: their agent is not, or something is withdrawn or tainted."""
    sort: str = "name"
    reverse: bool = False


def chosen_rows(reading: ClusterReading, choice: NodeChoice) -> list[Row]:
    """The rows to show, in their order, ties by name; what is not known comes last.

    Raises:
        Refused: a node that is named is not there.
    """
    rows = list(node_rows(reading))
    if missing := sorted(set(choice.names) - {row["node"] for row in rows}):
        raise Refused(f"no node {', '.join(missing)}: see sublet nodes", reason=NO_SUCH_OBJECT)
    labels = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in (*reading.node_objects, *reading.nodes)
    }
    shown = [
        row
        for row in rows
        if (not choice.names or row["node"] in choice.names)
        and choice.admits(labels[row["node"]])
        and not (choice.not_ready and is_well(row))
    ]
    field, largest_first = SORTS[choice.sort]
    known = [row for row in shown if row[field] is not None]
    known.sort(key=lambda row: row[field], reverse=largest_first != choice.reverse)
    return [*known, *(row for row in shown if row[field] is None)]


def watched_lines(
    read: Callable[[], ClusterReading], choice: NodeChoice, wait: Callable[[], object], *, wide: bool
) -> Iterator[str]:
    """Lines without an end: first the table, then a line for each node that has changed since, or is gone."""
    seen: dict[str, Row] = {}
    first = True
    while True:
        reading = read()
        rows = chosen_rows(reading, choice)
        changed = [row for row in rows if _told(row) != _told(seen.get(row["node"]))]
        if changed:
            yield node_lines(changed, reading.now, wide=wide, header=first)
        now = {row["node"]: row for row in rows}
        yield from (f"node/{name} is not among them any more" for name in sorted(seen.keys() - now.keys()))
        seen, first = now, False
        wait()


def _told(row: Row | None) -> Row | None:
    return None if row is None else {key: value for key, value in row.items() if key not in UNSEEN}


def sorts(word: str) -> str:
    """A word of `SORTS`.

    Raises:
        Refused: it is none.
    """
    if word not in SORTS:
        raise Refused(f"--sort {word!r}: want {', '.join(SORTS)}", reason="option")
    return word


def names_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """As other commands take them."""
    return tuple(f"node/{row['node']}" for row in rows)
