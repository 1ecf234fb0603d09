"""The rows of the live screen: pools with their pods, sorted and filtered as the user chose."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from sublet.output import printable
from sublet.views.facts import NodeFacts
from sublet.views.usage import Usage, pod_rows, pool_rows

SortKey = Literal["cpu", "memory", "name"]
SORT_KEYS: tuple[SortKey, ...] = ("cpu", "memory", "name")


@dataclass(frozen=True, slots=True)
class TopRow:
    """One line: a pool, or a pod of the pool above it."""

    usage: Usage
    is_pool: bool

    @property
    def key(self) -> str:
        """What the line is about, so that the cursor stays with it."""
        return f"{'pool' if self.is_pool else 'pod'}/{self.usage.name}"


def top_rows(facts: NodeFacts, sort: SortKey, wanted: str) -> list[TopRow]:
    """Every pool with its pods below it, pods by use; with a filter, pods that hold it and the pools of those."""
    return [row for pool in pool_rows(facts) for row in _of_pool(facts, pool, sort, wanted.lower())]


def _of_pool(facts: NodeFacts, pool: Usage, sort: SortKey, wanted: str) -> Iterator[TopRow]:
    pods = [pod for pod in pod_rows(facts, pool.name) if wanted in pod.name.lower()]
    if wanted and not pods and wanted not in pool.name.lower():
        return
    yield TopRow(pool, is_pool=True)
    for pod in sorted(pods, key=_order(sort)):
        yield TopRow(pod, is_pool=False)


def _order(sort: SortKey) -> Callable[[Usage], tuple[float, str]]:
    """Largest first, what is not known last, and by name where that is the same."""
    if sort == "cpu":
        return lambda row: (-(-1.0 if row.cpu_usage_cores is None else row.cpu_usage_cores), row.name)
    if sort == "memory":
        return lambda row: (-(-1.0 if row.memory_bytes is None else float(row.memory_bytes)), row.name)
    return lambda row: (0.0, row.name)


def row_title(row: TopRow) -> str:
    """The first cell: a pool's name, or a pod's, set in."""
    return printable(row.usage.name if row.is_pool else f"  {row.usage.name}")
