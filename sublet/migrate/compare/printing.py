"""Prints a comparison."""

from dataclasses import asdict
from typing import Any, TextIO

from sublet.migrate.compare.difference import Comparison, DifferenceRow, Quantity
from sublet.migrate.compare.evictions import EvictionsSeen
from sublet.output import columns, duration

HEAD = ("quantity", "theirs", "ours", "mean", "p95", "lowest", "highest", "less", "more", "moments")
_GIB, _MILLIS = 1 << 30, 1000
NAMES: dict[Quantity, str] = {
    "cpu_cores": "CPU of best-effort pods",
    "offer_cpu_millis": "batch-cpu",
    "offer_memory_bytes": "batch-memory",
}
MOST_NAMED = 5
QUIET_EVERY_S = 60.0
"""Where nobody watches a terminal, one line a minute is enough."""


class ComparisonLine:
    """How far it is: one line that is written over on a terminal, else a line a minute."""

    def __init__(self, for_s: float, out: TextIO) -> None:
        self._for_s, self._out, self._terminal = for_s, out, out.isatty()
        self._told_s: float | None = None

    def show(self, passed_s: float, moments: int) -> None:
        """Say it, if it is time."""
        if not self._terminal and self._told_s is not None and passed_s < self._told_s + QUIET_EVERY_S:
            return
        self._told_s = passed_s
        so_far = f"{duration(passed_s)} of {duration(self._for_s)}, {moments} moments"
        line = f"comparing: {so_far}; Ctrl-C prints what there is"
        self._out.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
        self._out.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._terminal:
            self._out.write("\r\x1b[K")
            self._out.flush()


def comparison_table(found: Comparison, evictions: EvictionsSeen, passed_s: float) -> str:
    """A row for each quantity: means, then ours less theirs, then how often ours was less and more."""
    rows = found.rows()
    table = columns(HEAD, [_cells(row) for row in rows], right=range(1, len(HEAD))) if rows else "nothing to compare"
    ours, theirs = _pods(evictions.ours), _pods(evictions.theirs)
    return "\n".join([
        table,
        f"{found.moments} moments in {duration(passed_s)}; at {found.one_sided} one agent did not say everything",
        f"evictions: theirs {theirs}{f' ({evictions.why})' if evictions.why else ''}, ours would have been {ours}",
    ])  # fmt: skip


def comparison_document(found: Comparison, evictions: EvictionsSeen, passed_s: float) -> dict[str, Any]:
    """The same for programs."""
    return {
        "seconds": round(passed_s, 1),
        "moments": found.moments,
        "one_sided_moments": found.one_sided,
        "quantities": [asdict(row) for row in found.rows()],
        "evictions": asdict(evictions),
    }


def _cells(row: DifferenceRow) -> list[str]:
    figures = (row.theirs_mean, row.ours_mean, row.mean, row.p95, row.lowest, row.highest)
    shown = [_amount(row.quantity, figure, signed=number in (2, 4, 5)) for number, figure in enumerate(figures)]
    return [NAMES[row.quantity], *shown, _part(row.less, row), _part(row.more, row), str(row.moments)]


def _part(count: int, row: DifferenceRow) -> str:
    return f"{100 * count / row.moments:.0f} %"


def _amount(quantity: Quantity, figure: float, *, signed: bool) -> str:
    sign = "+" if signed else ""
    if quantity == "offer_memory_bytes":
        return f"{figure / _GIB:{sign}.2f} GiB"
    cores = figure / _MILLIS if quantity == "offer_cpu_millis" else figure
    return f"{cores:{sign}.2f} cores"


def _pods(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "not known"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{len(names)}" + (f" ({', '.join(names[:MOST_NAMED])}{more})" if names else "")
