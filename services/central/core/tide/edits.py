"""The edits of a Node, step by step of a change: each is one write, after which the Node records its progress.

A node is closed by a NoSchedule taint of the side that it moves to, next to its current one, so no new pod comes.
`spec.unschedulable` belongs to administrators, and is left alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from services.central.core.tide.change import CHANGE, LAST, LastChange, NodeChange
from services.central.core.tide.marks import SideTaints, TideTaint, marks_of
from services.central.core.tide.roles import Role
from services.central.core.tide.seen import TideNodeSeen, taint_of


@dataclass(frozen=True, slots=True)
class PoolMarks:
    """Marks of a pool: its name, and the taints of its sides."""

    pool: str
    taints: SideTaints


@dataclass(frozen=True, slots=True)
class NodeEdit:
    """All labels and taints of a Node, and our two annotations."""

    labels: Mapping[str, str]
    taints: tuple[TideTaint, ...]
    change: NodeChange | None
    last: LastChange | None

    def changes(self, node: TideNodeSeen) -> bool:
        """Whether the Node is not so yet."""
        return self != standing(node)

    @property
    def annotations(self) -> dict[str, str | None]:
        """Our annotations; None: absent."""
        notes = ((CHANGE, self.change), (LAST, self.last))
        return {key: None if note is None else note.model_dump_json(exclude_none=True) for key, note in notes}


def standing(node: TideNodeSeen) -> NodeEdit:
    """Return a Node unchanged."""
    return NodeEdit(node.labels, node.taints, node.change, node.last)


def closing(node: TideNodeSeen, change: NodeChange, own: PoolMarks) -> NodeEdit:
    """Close the node to new pods until the change has ended."""
    shut = replace(own.taints.of(change.to), effect="NoSchedule")
    taints = tuple(sorted({*node.taints, shut}))
    return replace(standing(node), taints=taints, change=change)


def marked(node: TideNodeSeen, role: Role | None, own: PoolMarks, last: LastChange | None) -> NodeEdit:
    """The node has this role, and nothing of a change is left on it; None: it is in no pool."""
    marks = marks_of(role, own.pool, node.labels, node.taints, own.taints)
    return NodeEdit(marks.labels, marks.taints, None, last)


def node_patch(document: Mapping[str, Any], now: TideNodeSeen, wanted: NodeEdit) -> dict[str, Any]:
    """The differences as a merge patch, at the version that was read: the list of taints has no keys for a merge."""
    meta: dict[str, Any] = {"name": now.name, "resourceVersion": document["metadata"]["resourceVersion"]}
    labels = {key: wanted.labels.get(key) for key in now.labels.keys() | wanted.labels.keys()}
    if changed := {key: value for key, value in labels.items() if value != now.labels.get(key)}:
        meta["labels"] = changed
    before = standing(now).annotations
    if notes := {key: text for key, text in wanted.annotations.items() if text != before[key]}:
        meta["annotations"] = notes
    if wanted.taints == now.taints:
        return {"metadata": meta}
    # As they stand in the document: a taint of others may have fields that are not read here.
    rows = {taint_of(row): row for row in (document.get("spec") or {}).get("taints") or ()}
    taints = [rows.get(taint) or _row(taint) for taint in wanted.taints]
    return {"metadata": meta, "spec": {"taints": taints or None}}


def _row(taint: TideTaint) -> dict[str, str]:
    row = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {name: text for name, text in row.items() if text}
