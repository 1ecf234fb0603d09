"""Google's cluster trace of 2019 (version 3): rows of `instance_usage`, as JSON lines or as CSV with a header.

An instance becomes a tenant. Its use is given in parts of the largest machine, which here is the whole node.

Facts: docs/facts/traces.md#google-2019.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused
from sublet.replay.traces.formats.series import SeriesRows, UseRow, number_of
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

INTERVAL_S = 300.0
MICROSECONDS = 1e6
MAX_ROW_BYTES = 1 << 16
CPU_COLUMNS = ("average_usage.cpus", "average_usage_cpus")
"""A nested field of BigQuery has a dot in its name, or an underscore where a query renamed it."""
_COLUMNS = ("start_time", "collection_id", "instance_index")


def looks_like_google(first_line: str) -> bool:
    """Whether a line is a row in JSON, or the header."""
    if first_line.lstrip().startswith("{"):
        return all(f'"{column}"' in first_line for column in _COLUMNS)
    fields = [field.strip() for field in first_line.split(",")]
    return all(column in fields for column in _COLUMNS) and any(column in fields for column in CPU_COLUMNS)


def read_google(name: str, lines: Iterable[str], cpus: int, faults: Faults) -> tuple[list[TenantSeries], float]:
    """The series of a file.

    Raises:
        Refused: no row can be used, or there are too many.
    """
    rows = SeriesRows(name, faults, INTERVAL_S)
    found = iter(lines)
    first = next(found, "")
    if first.lstrip().startswith("{"):
        rows.read(([line] for line in chain([first], found)), lambda row: _of_json(row[0], cpus))
        return rows.series()
    header = [field.strip() for field in first.split(",")]
    rows.read(csv.reader(found), lambda row: _of_fields(_named(header, row), cpus), first=2)
    return rows.series()


def _of_json(line: str, cpus: int) -> UseRow | None:
    if not line.strip():
        return None
    try:
        row = read_json_object(line, what="row", max_bytes=MAX_ROW_BYTES)
    except Refused as refusal:
        raise ValueError(str(refusal)) from None
    usage = row.get("average_usage")
    flat = {**row, CPU_COLUMNS[0]: usage.get("cpus")} if isinstance(usage, dict) else row
    return _of_fields(flat, cpus)


def _named(header: Sequence[str], row: Sequence[str]) -> Mapping[str, Any]:
    if len(row) != len(header):
        raise ValueError(f"{len(row)} fields, want {len(header)}")
    return dict(zip(header, row, strict=True))


def _of_fields(row: Mapping[str, Any], cpus: int) -> UseRow | None:
    use = next((row[column] for column in CPU_COLUMNS if row.get(column) not in (None, "")), None)
    if use is None:
        return None
    tenant = "-".join(_text(row, column) for column in _COLUMNS[1:])
    return tenant, number_of("start_time", _text(row, "start_time")) / MICROSECONDS, cpus * number_of("cpus", str(use))


def _text(row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise ValueError(f"{column}: {str(value)[:40]!r}: want a number")
    return str(value)
