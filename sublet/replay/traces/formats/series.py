"""Rows of CPU use, in any order, become one series for each tenant.

A row that cannot be read is told with its line and left out; rows of one tenant are sorted by time, and of two at one
moment the first counts. A file of more rows than `MAX_ROWS` is not read to its end.
"""

import csv
import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from statistics import median

from shared.errors import Refused
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

MAX_ROWS = 50_000_000
MAX_CORES = 1e6
MAX_TIME_S = 1e12
MAX_NAME_CHARACTERS = 1024
MAX_TOLD = 10_000
"""Rows that are told one by one; of a file of another kind every row is wrong."""

MOST_STEPS = 100_000
"""Of so many steps between two values, spread over the file, the usual one is found."""
MAX_OVER_PERCENT = 110.0
"""Up to here a percentage is whole use that was measured over a little less than its window."""

UseRow = tuple[str, float, float]
"""Tenant, time in seconds, and cores."""


@dataclass(slots=True)
class SeriesRows:
    """The rows of one file."""

    name: str
    faults: Faults
    interval_s: float
    """Of a file in which no tenant has two rows."""
    _times: "dict[str, array[float]]" = field(default_factory=dict)
    _cores: "dict[str, array[float]]" = field(default_factory=dict)
    _rows: int = 0
    _first_fault: str = ""

    def read(
        self, rows: Iterable[Sequence[str]], parse: Callable[[Sequence[str]], UseRow | None], first: int = 1
    ) -> None:
        """Read rows; `parse` says what one holds, None for a row that counts nothing. `first`: the first one's line."""
        numbered = enumerate(_parsable(rows), first)
        for number, row in numbered:
            if not row:
                continue
            try:
                found = parse(row)
                if found is not None:
                    self.add(*found)
            except ValueError as error:
                self.refuse(f"line {number}: {error}")

    def add(self, tenant: str, at_s: float, cores: float) -> None:
        """Add a row.

        Raises:
            ValueError: it is out of bounds.
            Refused: there are too many rows.
        """
        if not tenant.strip() or len(tenant) > MAX_NAME_CHARACTERS:
            raise ValueError(f"tenant {tenant[:40]!r}: want a name of 1 to {MAX_NAME_CHARACTERS} characters")
        if not abs(at_s) <= MAX_TIME_S:
            raise ValueError(f"time {at_s:g} s: want at most {MAX_TIME_S:g}")
        if not 0 <= cores <= MAX_CORES:
            raise ValueError(f"use {cores:g} cores: want 0 to {MAX_CORES:g}")
        self._rows += 1
        if self._rows > MAX_ROWS:
            raise Refused(f"{self.name}: more than {MAX_ROWS} rows; cut the file into smaller ones", reason="too_large")
        self._times.setdefault(tenant.strip(), array("d")).append(at_s)
        self._cores.setdefault(tenant.strip(), array("d")).append(cores)

    def capped_percent_of(self, what: str, text: str, cores: float) -> float:
        """Percent of so many cores, in cores; a little above 100 counts as 100, and is counted in `faults`.

        Raises:
            ValueError: it is no number of 0 to `MAX_OVER_PERCENT`.
        """
        value = number_of(what, text)
        if not 0 <= value <= MAX_OVER_PERCENT:
            raise ValueError(f"{what}: {value:g}: want 0 to 100 percent, at most {MAX_OVER_PERCENT:g}")
        if value > 100:
            self.faults.capped_percents += 1
        return min(value, 100.0) * cores / 100

    def refuse(self, fault: str) -> None:
        """Tell of a row that is left out."""
        self._first_fault = self._first_fault or fault
        if len(self.faults.refused) < MAX_TOLD:
            self.faults.refused.append(f"{self.name}: {fault}")

    def series(self) -> tuple[list[TenantSeries], float]:
        """The tenants' series, and the usual time between two values.

        Raises:
            Refused: no row could be used.
        """
        if not self._times:
            why = f": {self._first_fault}" if self._first_fault else ""
            raise Refused(f"{self.name}: no row can be used{why}", reason="malformed")
        found = [_sorted(tenant, self._times[tenant], self._cores[tenant]) for tenant in self._times]
        return found, usual_interval_s(found, self.interval_s)


def usual_interval_s(series: Sequence[TenantSeries], otherwise_s: float) -> float:
    """The median time between two values of a tenant; `otherwise_s` where none has two."""
    count = sum(len(one.times_s) - 1 for one in series)
    steps = (after - before for one in series for before, after in pairwise(one.times_s))
    # Of 50 million rows a list of all steps would take more memory than the rows themselves.
    return median(list(islice(steps, 0, None, max(1, -(-count // MOST_STEPS)))) or [otherwise_s])


def _sorted(tenant: str, times: "array[float]", cores: "array[float]") -> TenantSeries:
    if all(before < after for before, after in pairwise(times)):
        return TenantSeries(tenant, times, cores)
    first_of: dict[float, float] = {}
    for at_s, use in zip(times, cores, strict=True):
        first_of.setdefault(at_s, use)
    ordered = sorted(first_of.items())
    return TenantSeries(tenant, array("d", [at for at, _ in ordered]), array("d", [use for _, use in ordered]))


def _parsable(rows: Iterable[Sequence[str]]) -> Iterable[Sequence[str]]:
    """The rows as far as the parser of CSV gets: a NUL or a field of any length is an error of its own kind."""
    found = iter(rows)
    while True:
        try:
            yield next(found)
        except StopIteration:
            return
        except csv.Error as error:
            yield [f"no CSV: {error}"]


def number_of(what: str, text: str) -> float:
    """A finite number.

    Raises:
        ValueError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{what}: {text.strip()[:40]!r} is no finite number")
    return value


def percent_of(what: str, text: str, cores: float) -> float:
    """Percent of so many cores, in cores.

    Raises:
        ValueError: it is no number of 0 to 100.
    """
    value = number_of(what, text)
    if not 0 <= value <= 100:
        raise ValueError(f"{what}: {value:g}: want 0 to 100 percent")
    return value * cores / 100


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
