"""The store of the metrics API: which samples it takes, and how long it keeps them.

Facts: docs/facts/katalyst-metrics.md#store.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from services.central.core.custom_metrics.series import MeteredObject, MetricSample, MetricTable, SeriesIndex

Dropped = Literal["unknown_object", "expired", "duplicate", "full"]
ObjectLabels = Callable[[MeteredObject], Mapping[str, str] | None]
"""Return the labels of an object of the cluster, None if there is no such object."""
EXPIRE_S = 300


@dataclass(frozen=True, slots=True)
class StoreBounds:
    """Beyond these nothing more is taken until something expires."""

    series: int
    samples: int
    series_of_object: int
    """Prevents one pod, or one node reporting its pods, from taking the space of all others."""


class MetricStore:
    """Samples of the last `expire_s`; without `objects` every object may exist."""

    def __init__(
        self, expire_s: float = EXPIRE_S, objects: ObjectLabels | None = None, bounds: StoreBounds | None = None
    ) -> None:
        self.index = SeriesIndex()
        self.series, self.samples = 0, 0
        self._expire_ms, self._objects, self._bounds = round(expire_s * 1000), objects, bounds
        self._series_of = Counter[MeteredObject]()
        self._collected_ms: int | None = None

    def insert(self, samples: Iterable[MetricSample], now_ms: int) -> tuple[int, Counter[Dropped]]:
        """How many were taken, and why others were not."""
        added, dropped = 0, Counter[Dropped]()
        for sample in samples:
            why = self._take(sample, now_ms)
            if why is None:
                added += 1
            else:
                dropped[why] += 1
        return added, dropped

    def _take(self, sample: MetricSample, now_ms: int) -> Dropped | None:
        key, at_ms = sample.key, sample.timestamp_ms
        if key.about.kind is not None and self._objects is not None and self._objects(key.about) is None:
            return "unknown_object"
        # A clock that went back brings nothing back that has been removed.
        if at_ms < now_ms - self._expire_ms or (self._collected_ms is not None and at_ms < self._collected_ms):
            return "expired"
        series = self.index.find(key)
        if series is not None and series.has(at_ms):
            return "duplicate"
        if self._bounds is not None and self._is_full(self._bounds, None if series is not None else key.about):
            return "full"
        if series is None:
            series = self.index.series(key)
            self.series += 1
            self._series_of[key.about] += 1
        series.put(at_ms, sample.value)
        self.samples += 1
        return None

    def _is_full(self, bounds: StoreBounds, new_of: MeteredObject | None) -> bool:
        """Return whether there is no space for a sample; `new_of`: the object whose series would be new."""
        if self.samples >= bounds.samples:
            return True
        return new_of is not None and (
            self.series >= bounds.series or self._series_of[new_of] >= bounds.series_of_object
        )

    def collect(self, now_ms: int) -> Iterator[MetricTable]:
        """Remove what is older than is kept, table by table, so that others have a turn between two."""
        until_ms = now_ms - self._expire_ms
        self._collected_ms = until_ms if self._collected_ms is None else max(self._collected_ms, until_ms)
        for table in list(self.index.tables()):
            self._collect_table(table, until_ms)
            yield table

    def _collect_table(self, table: MetricTable, until_ms: int) -> None:
        emptied = []
        for name, own in self.index.objects(table).items():
            for series in own.values():
                self.samples -= series.forget(until_ms)
            if empty := [labels for labels, series in own.items() if not series]:
                emptied.append((name, empty))
        for name, labels in emptied:
            self.index.drop(table, name, labels)
            self.series -= len(labels)
            about = MeteredObject(table.kind, table.namespace, name)
            self._series_of[about] -= len(labels)
            if not self._series_of[about]:
                del self._series_of[about]
