"""Alibaba's cluster trace of 2018: `machine_usage.csv` and `container_usage.csv`, which have no header.

A machine or container becomes a tenant that requests `pod_cores`; 100 percent of it are all of them.

Facts: docs/facts/traces.md#alibaba-2018.
"""

import csv
from collections.abc import Iterable, Sequence

from sublet.replay.traces.formats.series import SeriesRows, UseRow, is_number, number_of, percent_of
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

INTERVAL_S = 10.0
MACHINE_FIELDS, CONTAINER_FIELDS = 9, 11


def looks_like_alibaba(first_line: str) -> bool:
    """Whether a line is a row of one of the two tables."""
    fields = first_line.rstrip("\r\n").split(",")
    if len(fields) == MACHINE_FIELDS:
        return fields[0].startswith("m_") and is_number(fields[1])
    return len(fields) == CONTAINER_FIELDS and fields[1].startswith("m_") and is_number(fields[2])


def read_alibaba(name: str, lines: Iterable[str], pod_cores: float, faults: Faults) -> tuple[list[TenantSeries], float]:
    """The series of a file.

    Raises:
        Refused: no row can be used, or there are too many.
    """

    def parse(row: Sequence[str]) -> UseRow | None:
        if len(row) not in (MACHINE_FIELDS, CONTAINER_FIELDS):
            raise ValueError(f"{len(row)} fields, want {MACHINE_FIELDS} or {CONTAINER_FIELDS}")
        at = 1 if len(row) == MACHINE_FIELDS else 2
        # Some rows have no figure: nothing was measured then, which is not the same as nothing used.
        if not row[at + 1].strip():
            return None
        return row[0], number_of("time_stamp", row[at]), percent_of("cpu_util_percent", row[at + 1], pod_cores)

    rows = SeriesRows(name, faults, INTERVAL_S)
    rows.read(csv.reader(lines), parse)
    return rows.series()
