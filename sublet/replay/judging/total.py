"""The outcome of a replay: each contender's score over all nodes, added up node by node, in the order of the nodes."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from sublet.replay.contender import Sizes
from sublet.replay.score import Score
from sublet.replay.traces.frames import Faults


@dataclass(slots=True)
class Curve:
    """How one contender fared on one node over time, for the plot: a value a frame."""

    start_s: float = 0.0
    at_s: "array[float]" = field(default_factory=lambda: array("d"))
    wanted_cores: "array[float]" = field(default_factory=lambda: array("d"))
    room_cores: "array[float]" = field(default_factory=lambda: array("d"))
    offered_cores: "array[float]" = field(default_factory=lambda: array("d"))
    violated: bytearray = field(default_factory=bytearray)

    def add(self, at_s: float, wanted_cores: float, sizes: Sizes, batch_cores: float, violated: bool) -> None:
        """Add what was in force in the time before this moment."""
        self.at_s.append(at_s)
        self.wanted_cores.append(wanted_cores)
        self.room_cores.append(sizes.room_cores(batch_cores))
        self.offered_cores.append(sizes.offered_cores)
        self.violated.append(violated)


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One contender's result over all nodes."""

    name: str
    score: Score
    curve: Curve | None


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The whole comparison."""

    rows: tuple[ReplayRow, ...]
    oracle: Score
    """What can be reached at most, whether it is a row or not."""
    nodes: tuple[str, ...]
    frames: int
    trace_s: float
    """Longest time of one node."""
    node_s: float
    """Time of all nodes together that was counted."""
    plotted: str | None
    cpus: int
    """CPUs of the node that is plotted, else of the largest."""
    faults: Faults
    rules: tuple[str, ...]
    """How frames were made from traces of another kind."""


@dataclass(slots=True)
class ReplayTotal:
    """Nodes added up. A node may come in several outcomes, of which each n-th has every n-th row from its place on."""

    rows: list[ReplayRow] = field(default_factory=list)
    oracle: Score = field(default_factory=Score)
    nodes: list[str] = field(default_factory=list)
    rules: dict[str, None] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    frames: int = 0
    trace_s: float = 0.0
    cpus: int = 0
    plotted: ReplayOutcome | None = None

    def add(self, of_rows: Sequence[ReplayOutcome]) -> None:
        """Add one node."""
        first = of_rows[0]
        self.oracle.add(first.oracle)
        self.faults.add(first.faults)
        self.nodes += first.nodes
        self.rules |= dict.fromkeys(first.rules)
        self.frames += first.frames
        self.trace_s, self.cpus = max(self.trace_s, first.trace_s), max(self.cpus, first.cpus)
        rows = interleaved(of_rows)
        self.rows = self.rows or [ReplayRow(row.name, Score(), None) for row in rows]
        for mine, row in zip(self.rows, rows, strict=True):
            mine.score.add(row.score)
        # Of several nodes of that name the first is plotted.
        if first.plotted is not None and self.plotted is None:
            self.plotted = first
            self.rows = [ReplayRow(mine.name, mine.score, row.curve) for mine, row in zip(self.rows, rows, strict=True)]

    def outcome(self) -> ReplayOutcome:
        """All of it."""
        return ReplayOutcome(
            rows=tuple(self.rows),
            oracle=self.oracle,
            nodes=tuple(self.nodes),
            frames=self.frames,
            trace_s=self.trace_s,
            node_s=self.oracle.node_s,
            plotted=self.plotted.plotted if self.plotted else None,
            cpus=self.plotted.cpus if self.plotted else self.cpus,
            faults=self.faults,
            rules=tuple(self.rules),
        )


def interleaved(of_rows: Sequence[ReplayOutcome]) -> list[ReplayRow]:
    """The rows of one node's outcomes in their order."""
    count = sum(len(part.rows) for part in of_rows)
    return [of_rows[at % len(of_rows)].rows[at // len(of_rows)] for at in range(count)]
