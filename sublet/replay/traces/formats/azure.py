"""Azure's VM traces of 2017 and 2019: `vm_cpu_readings-file-*.csv`, which have no header.

A VM becomes a tenant that requests `pod_cores`; 100 percent of it are all of them. The average counts.

Facts: docs/facts/traces.md#azure.
"""

import csv
from collections.abc import Iterable, Sequence

from sublet.replay.traces.formats.series import SeriesRows, UseRow, is_number, number_of
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

INTERVAL_S = 300.0
FIELDS = 5


def looks_like_azure(first_line: str) -> bool:
    """Whether a line is a time, a name and three percentages, or the header that some copies have."""
    fields = [field.strip().lower() for field in first_line.rstrip("\r\n").split(",")]
    if len(fields) != FIELDS:
        return False
    return (is_number(fields[0]) and all(map(is_number, fields[2:]))) or _is_header(fields)


def _is_header(fields: Sequence[str]) -> bool:
    return fields[0].startswith("timestamp") and "cpu" in fields[-1]


def read_azure(name: str, lines: Iterable[str], pod_cores: float, faults: Faults) -> tuple[list[TenantSeries], float]:
    """The series of a file.

    Raises:
        Refused: no row can be used, or there are too many.
    """
    rows = SeriesRows(name, faults, INTERVAL_S)

    def parse(row: Sequence[str]) -> UseRow | None:
        if len(row) != FIELDS:
            raise ValueError(f"{len(row)} fields, want {FIELDS}")
        if _is_header([field.strip().lower() for field in row]):
            return None
        return row[1], number_of("timestamp", row[0]), rows.capped_percent_of("avg cpu", row[4], pod_cores)

    rows.read(csv.reader(lines), parse)
    return rows.series()
