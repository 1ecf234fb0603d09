"""Series of samples, found by metric, kind of object, namespace, name and labels.

Samples lie in arrays of numbers, not in objects: 16 bytes each, for there are millions.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from sys import intern
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]
"""Names and values in order."""
NO_SERIES: Mapping[str | None, Mapping[Labels, "MetricSeries"]] = {}


class MeteredObject(NamedTuple):
    """The object of a series. Without a kind it is an external metric, which has only a namespace."""

    kind: str | None
    namespace: str | None
    name: str | None


class SeriesKey(NamedTuple):
    """Identifies a series."""

    metric: str
    about: MeteredObject
    labels: Labels


class MetricSample(NamedTuple):
    """One value of a series at one time."""

    key: SeriesKey
    timestamp_ms: int
    value: float


class MetricTable(NamedTuple):
    """The unit of lookup: a metric of one kind of object in one namespace, or in none."""

    metric: str
    kind: str | None
    namespace: str | None


class MetricSeries:
    """The samples of one series by time; of equal times the largest value is last."""

    __slots__ = ("labels", "times_ms", "values")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.times_ms = array("q")
        self.values = array("d")

    def __len__(self) -> int:
        return len(self.times_ms)

    def has(self, timestamp_ms: int) -> bool:
        """Return whether there is a sample at this time."""
        place = bisect_left(self.times_ms, timestamp_ms)
        return place < len(self.times_ms) and self.times_ms[place] == timestamp_ms

    def put(self, timestamp_ms: int, value: float) -> None:
        """Insert a sample in order; usually at the end."""
        place = bisect_right(self.times_ms, timestamp_ms)
        while place and self.times_ms[place - 1] == timestamp_ms and self.values[place - 1] > value:
            place -= 1
        self.times_ms.insert(place, timestamp_ms)
        self.values.insert(place, value)

    def forget(self, until_ms: int) -> int:
        """Remove the samples up to and at this time, and count them."""
        place = bisect_right(self.times_ms, until_ms)
        if place:
            del self.times_ms[:place], self.values[:place]
        return place

    def newest(self) -> tuple[int, float]:
        """Time and value of the newest sample. An empty series has none, and is in no index."""
        return self.times_ms[-1], self.values[-1]

    def points(self) -> Iterator[tuple[int, float]]:
        """All samples, oldest first."""
        return zip(self.times_ms, self.values, strict=True)


class SeriesIndex:
    """All series. None of them is empty, provided that callers that remove samples call `drop`.

    Texts are interned: a pod's name is one text in all of its series, and is freed with the last of them.
    """

    def __init__(self) -> None:
        self._tables: dict[MetricTable, dict[str | None, dict[Labels, MetricSeries]]] = {}

    def series(self, key: SeriesKey) -> MetricSeries:
        """The series of this key, made where there was none."""
        about = key.about
        table = MetricTable(key.metric, about.kind, about.namespace)
        objects = self._tables.get(table)
        if objects is None:
            objects = self._tables[table] = {}
        own = objects.get(about.name)
        if own is None:
            own = objects[None if about.name is None else intern(about.name)] = {}
        found = own.get(key.labels)
        if found is None:
            labels = tuple((intern(name), intern(value)) for name, value in key.labels)
            found = own[labels] = MetricSeries(labels)
        return found

    def find(self, key: SeriesKey) -> MetricSeries | None:
        """Return the series of this key, if there is one."""
        about = key.about
        own = self.objects(MetricTable(key.metric, about.kind, about.namespace)).get(about.name)
        return None if own is None else own.get(key.labels)

    def drop(self, table: MetricTable, name: str | None, labels: Collection[Labels]) -> None:
        """Remove these series of an object, and what is empty then."""
        objects = self._tables[table]
        for own in labels:
            del objects[name][own]
        if not objects[name]:
            del objects[name]
        if not objects:
            del self._tables[table]

    def objects(self, table: MetricTable) -> Mapping[str | None, Mapping[Labels, MetricSeries]]:
        """The series of a table, by the name of their object; an external metric's have none."""
        return self._tables.get(table, NO_SERIES)

    def tables(self) -> Collection[MetricTable]:
        """Every table that has series."""
        return self._tables.keys()
