"""The answer of Prometheus to a range query of CPU use in cores, as `rate(container_cpu_usage_seconds_total[1m])`.

Each series becomes a tenant, named by its namespace, pod and container, else by all of its labels.

Facts: docs/facts/traces.md#prometheus.
"""

from collections.abc import Iterable
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused
from sublet.replay.traces.formats.series import SeriesRows, number_of
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

INTERVAL_S = 60.0
MAX_BYTES = 512 << 20
_NAMING = ("namespace", "pod", "container")
_HEAD = ('"resultType"', '"status"')


def looks_like_prometheus(head: str) -> bool:
    """Whether a text begins as an answer of the HTTP API."""
    return head.lstrip().startswith("{") and any(word in head[:4096] for word in _HEAD)


def read_prometheus(name: str, lines: Iterable[str], faults: Faults) -> tuple[list[TenantSeries], float]:
    """The series of an answer; one that cannot be read is told and left out, and so is a value.

    Raises:
        Refused: the answer is none of a range query, is too large, or nothing in it can be used.
    """
    answer = read_json_object(_bounded(name, lines), what=name, max_bytes=MAX_BYTES)
    given = answer.get("data")
    data = given if isinstance(given, dict) else {}
    result = data.get("result")
    if answer.get("status") != "success" or not isinstance(result, list) or data.get("resultType") != "matrix":
        raise Refused(
            f"{name}: no answer to a range query: want status success and a matrix; ask /api/v1/query_range",
            reason="malformed",
        )
    rows = SeriesRows(name, faults, INTERVAL_S)
    for number, series in enumerate(result, 1):
        _read_one(rows, number, series)
    return rows.series()


def _read_one(rows: SeriesRows, number: int, series: Any) -> None:
    labels = series.get("metric") if isinstance(series, dict) else None
    values = series.get("values") if isinstance(series, dict) else None
    if not isinstance(labels, dict) or not isinstance(values, list):
        rows.refuse(f"series {number}: want metric and values")
        return
    tenant = _tenant(labels)
    for value in values:
        try:
            if not isinstance(value, list) or len(value) != 2:
                raise ValueError(f"{str(value)[:40]}: want a time and a value")
            rows.add(tenant, number_of("time", str(value[0])), number_of("value", str(value[1])))
        except ValueError as error:
            rows.refuse(f"series {number}: {error}")


def _tenant(labels: dict[str, Any]) -> str:
    named = [str(labels[key]) for key in _NAMING if labels.get(key)]
    return "/".join(named or [f"{key}={labels[key]}" for key in sorted(labels)]) or "all"


def _bounded(name: str, lines: Iterable[str]) -> str:
    found, size = [], 0
    for line in lines:
        size += len(line)
        if size > MAX_BYTES:
            raise Refused(f"{name}: at most {MAX_BYTES} bytes are read; ask for a shorter time", reason="too_large")
        found.append(line)
    return "".join(found)
