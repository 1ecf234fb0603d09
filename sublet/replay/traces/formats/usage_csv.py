"""A CSV of our own: the header `time_s,id,usage_cores`, then rows, each id's times ascending.

A value says the use from its time to the id's next row.
"""

import csv
import math
from collections.abc import Iterable

from shared.errors import Refused
from sublet.replay.traces.formats.series import usual_interval_s
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

HEADER = ["time_s", "id", "usage_cores"]
MAX_CORES = 1e6
DEFAULT_INTERVAL_S = 60.0
"""Where every id has one row only."""


def looks_like_usage(first_line: str) -> bool:
    """Whether a line is the header."""
    return [field.strip() for field in first_line.split(",")] == HEADER


def read_usage(name: str, lines: Iterable[str], faults: Faults) -> tuple[list[TenantSeries], float]:
    """The ids' series, and the median time between two rows of an id; a bad row is told in `faults` and left out.

    Raises:
        Refused: the header is another one, or no row can be used.
    """
    rows = csv.reader(lines)
    header = next(rows, [])
    if [field.strip() for field in header] != HEADER:
        raise Refused(f"{name}: line 1: want the header {','.join(HEADER)}", reason="malformed")
    times: dict[str, list[float]] = {}
    cores: dict[str, list[float]] = {}
    for row in rows:
        if not row:
            continue
        try:
            at_s, tenant, use = _row(row, times)
        except ValueError as error:
            faults.refuse(f"{name}: line {rows.line_num}: {error}")
            continue
        times.setdefault(tenant, []).append(at_s)
        cores.setdefault(tenant, []).append(use)
    if not times:
        why = f": {faults.refused[0].removeprefix(f'{name}: ')}" if faults.refused else ""
        raise Refused(f"{name}: no row can be used{why}", reason="malformed")
    found = [TenantSeries(tenant, times[tenant], cores[tenant]) for tenant in times]
    return found, usual_interval_s(found, DEFAULT_INTERVAL_S)


def _row(row: list[str], times: dict[str, list[float]]) -> tuple[float, str, float]:
    if len(row) != len(HEADER):
        raise ValueError(f"{len(row)} fields, want {len(HEADER)}")
    at_s, tenant, use = _number("time_s", row[0]), row[1].strip(), _number("usage_cores", row[2])
    if not tenant:
        raise ValueError("id: empty")
    if not 0 <= use <= MAX_CORES:
        raise ValueError(f"usage_cores: {use:g}: want 0 to {MAX_CORES:g}")
    if tenant in times and at_s <= times[tenant][-1]:
        raise ValueError(f"out of order: {tenant} at {at_s:g} s after {times[tenant][-1]:g} s")
    return at_s, tenant, use


def _number(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{field}: {text.strip()!r} is no finite number")
    return value
