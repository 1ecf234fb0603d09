"""Bitbrains' VM traces (GWA-T-12): one file a VM, fields with semicolons between them, a header.

The VM becomes a tenant; its percentage counts of the cores that the row says it has. The header calls times
milliseconds; they are seconds.

Facts: docs/facts/traces.md#bitbrains.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from sublet.replay.traces.formats.series import SeriesRows, UseRow, number_of
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

INTERVAL_S = 300.0
LEAST_FIELDS = 5


def looks_like_bitbrains(first_line: str) -> bool:
    """Whether a line is the header."""
    fields = [field.strip().lower() for field in first_line.split(";")]
    return len(fields) >= LEAST_FIELDS and fields[0].startswith("timestamp") and fields[1] == "cpu cores"


def read_bitbrains(name: str, lines: Iterable[str], faults: Faults) -> tuple[list[TenantSeries], float]:
    """The one series of a file.

    Raises:
        Refused: no row can be used, or there are too many.
    """
    tenant = PurePath(name).stem
    rows = SeriesRows(name, faults, INTERVAL_S)

    def parse(row: Sequence[str]) -> UseRow | None:
        if len(row) < LEAST_FIELDS:
            raise ValueError(f"{len(row)} fields, want {LEAST_FIELDS} at least")
        if row[0].strip().lower().startswith("timestamp"):
            return None
        cores = number_of("CPU cores", row[1])
        return tenant, number_of("timestamp", row[0]), rows.capped_percent_of("CPU usage [%]", row[4], cores)

    rows.read(csv.reader(lines, delimiter=";"), parse)
    return rows.series()
