"""The comparison as a table and as a document; the same input gives the same bytes."""

import math
from typing import Any

from sublet.output import columns
from sublet.replay.batch import BatchRules
from sublet.replay.judging.total import ReplayOutcome

_HOUR_S = 3600.0

COLUMNS = (
    ("can run core-h", "batch_core_hours", 1),
    ("oracle %", "oracle_percent", 1),
    ("goodput core-h", "goodput_core_hours", 1),
    ("kept %", "offer_kept_percent", 1),
    ("offered %", "offered_percent", 1),
    ("machine used %", "machine_used_percent", 1),
    ("violation s", "violation_s", 0),
    ("violation core-s", "violation_core_s", 0),
    ("violation ppm", "violation_ppm", 0),
    ("episodes", "episodes", 0),
    ("shortage cores", "largest_shortage_cores", 1),
    ("evictions", "evictions", 0),
    ("size changes", "size_changes", 0),
    ("regrow s", "regrow_mean_s", 0),
    ("tenants use %", "tenant_utilisation_mean_percent", 1),
    ("max %", "tenant_utilisation_max_percent", 0),
)
"""What can run stands first: an offer alone can be won by promising what is not there."""


def document(outcome: ReplayOutcome, files: list[str], rules: BatchRules) -> dict[str, Any]:
    """Everything the table says, for programs; units are in the names."""
    return {
        "files": files,
        "nodes": len(outcome.nodes),
        "frames": outcome.frames,
        "node_hours": round(outcome.node_s / _HOUR_S, 3),
        "lost_frames": outcome.faults.lost_frames,
        "refused_frames": outcome.faults.refused_frames,
        "gaps_s": round(outcome.faults.gaps_s, 3),
        "batch": {
            "pod_cores": rules.pod_cores,
            "evict_after_s": rules.evict_after_s,
            "work_s": rules.work_s if math.isfinite(rules.work_s) else None,
        },
        "frames_made_by": list(outcome.rules),
        "rows": [{"name": row.name, **row.score.figures(outcome.oracle)} for row in outcome.rows],
    }


def headlines(found: dict[str, Any]) -> list[str]:
    """What was replayed, and how batch work behaves in it."""
    work_s = found["batch"]["work_s"]
    ends = "never end" if work_s is None else f"end after {work_s:g} s of work"
    batch, lost = found["batch"], found["lost_frames"] + found["refused_frames"]
    return [
        f"{', '.join(found['files'])}: {_count(found['nodes'], 'node')}, {found['node_hours']:g} node-hours, "
        f"{_count(found['frames'], 'frame')}" + (f", {lost} lost or refused" if lost else ""),
        *found["frames_made_by"],
        f"batch pods of {batch['pod_cores']:g} cores fill the offer and {ends}; what runs above it for "
        f"{batch['evict_after_s']:g} s is evicted, the youngest first, and its work is lost",
    ]


def table(found: dict[str, Any]) -> str:
    """The document as columns, below what was replayed."""
    header = ["policy", *(title for title, _, _ in COLUMNS)]
    rows = ([row["name"], *(cell(row[key], digits) for _, key, digits in COLUMNS)] for row in found["rows"])
    return "\n".join([*headlines(found), "", columns(header, rows, right=range(1, len(header))), *_forecasts(found)])


def _forecasts(found: dict[str, Any]) -> list[str]:
    """How often forecasts came true, as columns; nothing where no row makes any."""
    header = ["forecast of", "the need rises no further within", "cases", "claimed %", "covered %"]
    rows = [
        [
            row["name"],
            one["within"],
            str(one["cases"]),
            cell(one["claimed_percent"], 1),
            cell(one["covered_percent"], 1),
        ]
        for row in found["rows"]
        for one in row["forecasts"]
    ]
    return ["", columns(header, rows, right=range(2, len(header)))] if rows else []


def cell(value: float | None, digits: int) -> str:
    """A figure as text; empty where nothing was counted."""
    return "" if value is None else f"{value:.{digits}f}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
