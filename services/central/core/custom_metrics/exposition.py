"""Prometheus' text format, read line by line as samples (docs/facts/katalyst-metrics.md#samples).

A bad line affects only itself, while prometheus_client's parser stops at the first line that it cannot read, and loses
the scrape.
"""

import math
import re
from collections import Counter
from typing import Literal, NamedTuple

from services.central.core.custom_metrics.series import MeteredObject, MetricSample, SeriesKey

Unread = Literal["unreadable", "not_gauge", "not_a_number", "no_timestamp", "no_object_name", "expired"]
LARGEST_TIME_MS = (1 << 63) - 1
_SELECTOR = "selector_"
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\\n]|\\[\\"n])*)"\s*(,|$)')
_LINE = re.compile(rf'({_NAME})(?:\s*\{{((?:[^"}}]|"(?:[^"\\]|\\.)*")*)\}}\s*|\s+)(.*)')
_TYPE = re.compile(rf"#\s*TYPE\s+({_NAME})\s+(\S+)\s*")
_ESCAPED = re.compile(r'\\([\\"n])')
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


class _Line(NamedTuple):
    metric: str
    labels: dict[str, str]
    value: str
    time: str | None


def read_samples(
    text: str, now_ms: int, expire_s: float, *, untimed_ms: int | None = None
) -> tuple[list[MetricSample], Counter[Unread]]:
    """The gauges of one scrape in order, and how many lines were dropped for which reason.

    `untimed_ms`: the time of lines that say none; None: they are dropped.
    """
    samples: list[MetricSample] = []
    dropped: Counter[Unread] = Counter()
    types: dict[str, str] = {}
    oldest_ms = now_ms - round(expire_s * 1000)
    for raw in text.split("\n"):
        line = raw.strip()
        if declared := _TYPE.fullmatch(line):
            types[declared[1]] = declared[2].lower()
        elif line and not line.startswith("#"):
            found = _sample(line, types, oldest_ms, untimed_ms)
            if isinstance(found, MetricSample):
                samples.append(found)
            else:
                dropped[found] += 1
    return samples, dropped


def _sample(text: str, types: dict[str, str], oldest_ms: int, untimed_ms: int | None) -> MetricSample | Unread:
    """Return the sample of a line, or the first reason why there is none."""
    line = _split(text)
    if line is None:
        return "unreadable"
    if types.get(line.metric) != "gauge":
        return "not_gauge"
    if not _NUMBER.fullmatch(line.value):
        return "unreadable"
    value = float(line.value)
    if not math.isfinite(value):
        return "not_a_number"
    at_ms = _whole(line.time)
    if at_ms is None:
        at_ms = _whole(line.labels.get("timestamp"))
    if at_ms is None:
        at_ms = untimed_ms
    if at_ms is None:
        return "no_timestamp"
    kind, name = line.labels.get("object") or None, line.labels.get("object_name")
    if kind and not name:
        return "no_object_name"
    if at_ms < oldest_ms:
        return "expired"
    about = MeteredObject(kind, line.labels.get("namespace"), name)
    return MetricSample(SeriesKey(line.metric, about, _selected(line.labels)), at_ms, value)


def _split(text: str) -> _Line | None:
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    labels, rest = _labels(match[2] or ""), match[3].split()
    if labels is None or not 1 <= len(rest) <= 2:
        return None
    return _Line(match[1], labels, rest[0], rest[1] if len(rest) > 1 else None)


def _labels(text: str) -> dict[str, str] | None:
    """Return the labels between the braces; None if they are unreadable, or one is duplicated."""
    labels: dict[str, str] = {}
    place, text = 0, text.strip()
    while place < len(text):
        match = _LABEL.match(text, place)
        if match is None or match[1] in labels:
            return None
        labels[match[1]] = _ESCAPED.sub(lambda escaped: "\n" if escaped[1] == "n" else escaped[1], match[2])
        place = match.end()
    return labels


def _selected(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    named = ((key.removeprefix(_SELECTOR), value) for key, value in labels.items() if key.startswith(_SELECTOR))
    return tuple(sorted(label for label in named if label[0]))


def _whole(text: str | None) -> int | None:
    """A time of 64 bits, None where the text is none."""
    number = int(text) if text is not None and _WHOLE.fullmatch(text) else None
    return number if number is not None and abs(number) <= LARGEST_TIME_MS else None
