"""The best rows of a frontier: of each family at a violation budget, and of all rows at any."""

from collections.abc import Mapping, Sequence
from typing import Any

from sublet.replay.frontier.sweep import Family

BUDGETS_PPM = (10, 100, 1000)

ReplayFigures = Mapping[str, Any]
"""A row of the comparison's document."""


def frontier_rows(rows: Sequence[ReplayFigures]) -> set[str]:
    """Names of the rows than which no other runs as much batch work with as few violations; of equals all."""
    return {row["name"] for row in rows if not any(_beats(other, row) for other in rows)}


def _beats(other: ReplayFigures, row: ReplayFigures) -> bool:
    runs, lacks = other["batch_core_hours"], other["violation_ppm"] or 0.0
    as_good = runs >= row["batch_core_hours"] and lacks <= (row["violation_ppm"] or 0.0)
    return as_good and (runs > row["batch_core_hours"] or lacks < (row["violation_ppm"] or 0.0))


def best_within(rows: Sequence[ReplayFigures], budget_ppm: float) -> ReplayFigures | None:
    """The row that runs most within a budget; of equals the one with the fewest evictions; None where none is."""
    within = [row for row in rows if (row["violation_ppm"] or 0.0) <= budget_ppm]
    return min(within, key=lambda row: (-row["batch_core_hours"], row["evictions"], row["name"]), default=None)


def with_frontier(found: Mapping[str, Any], families: Sequence[Family]) -> dict[str, Any]:
    """The comparison's document with each row's family and settings, and each family's best at each budget."""
    of_row = {row: (family.name, label) for family in families for row, label in family.settings.items()}
    best = frontier_rows(found["rows"])
    rows = []
    for row in found["rows"]:
        family, label = of_row.get(row["name"], (row["name"], ""))
        rows.append({**row, "family": family, "settings": label, "on_frontier": row["name"] in best})
    names = list(dict.fromkeys(row["family"] for row in rows))
    return {**found, "rows": rows, "families": [_family(name, rows) for name in names]}


def _family(name: str, rows: Sequence[ReplayFigures]) -> dict[str, Any]:
    own = [row for row in rows if row["family"] == name]
    at = []
    for budget_ppm in BUDGETS_PPM:
        row = best_within(own, budget_ppm)
        keys = ("oracle_percent", "batch_core_hours", "goodput_core_hours", "evictions", "violation_ppm")
        chosen = {key: None if row is None else row[key] for key in keys}
        at.append({"budget_ppm": budget_ppm, "row": None if row is None else row["name"], **chosen})
    return {"name": name, "rows": len(own), "best": at}
