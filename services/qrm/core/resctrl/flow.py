"""Flow is the traffic between cores and memory: what leaves the cores of a domain, and where it arrives.

Facts: docs/facts/katalyst-bandwidth.md#from-targets-to-lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from shared.errors import Refused

ROOT = "/"
"""The group of all tasks that are in no other."""
_MILLIONTH = Fraction(1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Flow:
    """Traffic of a domain's cores in MB/s: from and to its own memory, and that of other domains."""

    local_mb: int
    remote_mb: int

    @property
    def total_mb(self) -> int:
        """Both."""
        return self.local_mb + self.remote_mb


def outgoing_targets(targets: Sequence[int], seen: Sequence[Flow], remote_limit_mb: int) -> list[int]:
    """Return what the cores of each domain may move, so that each domain's memory receives its target.

    Remote traffic is assumed to spread evenly over the other domains, as it does now. The solution is exact, because a
    domain that sends half of its traffic away makes the matrix nearly singular.

    Raises:
        Refused: there is more than one answer, or none (`singular_flow`).
    """
    local = [_local_part(flow, remote_limit_mb) for flow in seen]
    spread = max(1, len(targets) - 1)
    # Transposed: a row for each memory, a column for each domain's cores.
    rows = [
        [part if here == there else (1 - part) / spread for there, part in enumerate(local)]
        for here in range(len(local))
    ]
    found = _solved([[*row, Fraction(target)] for row, target in zip(rows, targets, strict=True)])
    return [max(0, int(one + _MILLIONTH)) for one in found]


def _local_part(flow: Flow, remote_limit_mb: int) -> Fraction:
    remote = min(flow.remote_mb, remote_limit_mb)
    # A silent domain has no direction: what it may move is what its memory may get.
    return Fraction(flow.local_mb, flow.local_mb + remote) if flow.local_mb + remote else Fraction(1)


def _solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """Gauss and Jordan, on equations with their right side last."""
    for column in range(len(rows)):
        pivot = next((row for row in range(column, len(rows)) if rows[row][column]), None)
        if pivot is None:
            raise Refused("the flow between domains cannot be turned around: several settings give the same",
                          reason="singular_flow")  # fmt: skip
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [one / rows[column][column] for one in rows[column]]
        for row in range(len(rows)):
            if row != column and rows[row][column]:
                factor = rows[row][column]
                rows[row] = [own - factor * top for own, top in zip(rows[row], rows[column], strict=True)]
    return [row[-1] for row in rows]
