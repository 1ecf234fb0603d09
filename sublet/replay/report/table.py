"""The comparison as a table and as a document; the same input gives the same bytes."""

from typing import Any

from sublet.output import columns
from sublet.replay.batch import BatchRules
from sublet.replay.run import ReplayOutcome

_HOUR_S = 3600.0

COLUMNS = (
    ("offered core-h", "offered_core_hours", 1),
    ("offered %", "offered_percent", 1),
    ("machine used %", "machine_used_percent", 1),
    ("violation s", "violation_s", 0),
    ("violation core-s", "violation_core_s", 0),
    ("violation ppm", "violation_ppm", 0),
    ("evictions", "evictions", 0),
    ("size changes", "size_changes", 0),
    ("tenants use %", "tenant_utilisation_mean_percent", 1),
    ("max %", "tenant_utilisation_max_percent", 0),
)


def document(outcome: ReplayOutcome, files: list[str], rules: BatchRules) -> dict[str, Any]:
    """Everything the table says, for programs; units are in the names."""
    return {
        "files": files,
        "nodes": len(outcome.nodes),
        "frames": outcome.frames,
        "node_hours": round(outcome.node_s / _HOUR_S, 3),
        "lost_frames": outcome.faults.lost_frames,
        "refused_frames": len(outcome.faults.refused),
        "gaps_s": round(outcome.faults.gaps_s, 3),
        "batch": {"pod_cores": rules.pod_cores, "evict_after_s": rules.evict_after_s},
        "frames_made_by": list(outcome.rules),
        "rows": [{"name": row.name, **row.score.figures()} for row in outcome.rows],
    }


def headlines(found: dict[str, Any]) -> list[str]:
    """What was replayed, and how batch work behaves in it."""
    batch, lost = found["batch"], found["lost_frames"] + found["refused_frames"]
    return [
        f"{', '.join(found['files'])}: {_count(found['nodes'], 'node')}, {found['node_hours']:g} node-hours, "
        f"{_count(found['frames'], 'frame')}" + (f", {lost} lost or refused" if lost else ""),
        *found["frames_made_by"],
        f"batch pods of {batch['pod_cores']:g} cores fill the offer; what runs above it for "
        f"{batch['evict_after_s']:g} s is evicted",
    ]


def table(found: dict[str, Any]) -> str:
    """The document as columns, below what was replayed."""
    header = ["policy", *(title for title, _, _ in COLUMNS)]
    rows = ([row["name"], *(cell(row[key], digits) for _, key, digits in COLUMNS)] for row in found["rows"])
    return "\n".join([*headlines(found), "", columns(header, rows, right=range(1, len(header)))])


def cell(value: float | None, digits: int) -> str:
    """A figure as text; empty where nothing was counted."""
    return "" if value is None else f"{value:.{digits}f}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
