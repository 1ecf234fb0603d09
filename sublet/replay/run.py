"""The replay: frame by frame, every contender sees what it may see, and what it decided before is judged.

The sizes in force while a frame's demand arose are those decided on the frame before. What a contender sees of the
frame follows from them (sublet/replay/seen.py).
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from services.advisor.core.model.view import View
from sublet.replay.batch import Batch, BatchRules
from sublet.replay.contender import Contender, Sizes
from sublet.replay.oracle import Oracle, OracleContender
from sublet.replay.score import Score
from sublet.replay.seen import TenantQueue, as_seen
from sublet.replay.traces.frames import Faults, FrameLoad, ReplayFrame, Trace


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


class _Run:
    """One contender on one node."""

    def __init__(self, contender: Contender, trace: Trace, rules: BatchRules, curve: Curve | None) -> None:
        self.bounds = contender.bounds(trace)
        self.score, self._curve = Score(), curve
        self._cpus = trace.cpus
        self._decider = contender.start(trace)
        self._oracle = self._decider if isinstance(self._decider, Oracle) else None
        self._sizes: Sizes | None = None
        self._batch = Batch(rules)
        self._queue = TenantQueue()
        self._violated = False

    def step(self, frame: ReplayFrame, view: View, loads: tuple[FrameLoad, FrameLoad], judge: bool) -> None:
        """Judge what is in force, then let the contender decide anew. `loads`: of this frame and of the next."""
        load, coming = loads
        if self._sizes is not None:
            view = self._judge(frame, view, load, self._sizes)
        # By a sample without rates the service does not decide either.
        if not judge:
            return
        if self._oracle is not None:
            self._oracle.coming_cores = coming.tenants_cores
        before, self._sizes = self._sizes, self._decider.decide(view, load.system_cores, frame.at_s)
        if before is not None and (before.tenants_cores, before.batch_cores) != (
            self._sizes.tenants_cores,
            self._sizes.batch_cores,
        ):
            self.score.size_changes += 1
        self._batch.offer(self._sizes.offered_cores, frame.at_s)

    def end(self) -> Score:
        """The score of the node, when all of its frames were replayed."""
        self.score.count_batch(self._batch)
        return self.score

    def _judge(self, frame: ReplayFrame, view: View, load: FrameLoad, sizes: Sizes) -> View:
        """Count the time before a frame; what the contender may see of the frame after its own sizes."""
        # Of the batch work that runs by the offers so far: an offer of this frame has its effect in the next.
        wanted, batch_cores = load.tenants_cores, self._batch.cores
        violated = self.score.count(frame.covers_s, self._cpus, wanted, sizes, batch_cores) and frame.covers_s > 0
        self.score.episodes += violated and not self._violated
        self._violated = violated
        if self._curve is not None:
            if not self._curve.at_s:
                self._curve.start_s = frame.at_s - frame.covers_s
            self._curve.add(frame.at_s, wanted, sizes, batch_cores, violated)
        used_cores = sizes.batch_use_cores(batch_cores)
        self._batch.run(frame.covers_s, used_cores)
        # What the contender may see follows from its own sizes: no two have the same view from here on.
        if frame.covers_s <= 0:
            self._queue.forget()
        self._queue.pass_time(frame.covers_s, wanted, sizes.tenants_cores)
        self.score.largest_queue_core_s = max(self.score.largest_queue_core_s, self._queue.core_s)
        # The oracle looks at nothing but what comes.
        return view if self._oracle else as_seen(view, wanted, self._queue, used_cores, load.system_cores)


def replay(
    traces: Iterable[Trace], contenders: Sequence[Contender], rules: BatchRules, plot_node: str | None = None
) -> ReplayOutcome:
    """Replay all traces through all contenders in one pass. `plot_node`: keep the curves of that node ("" the first).

    Raises:
        Refused: a policy raised.
    """
    chosen = [*contenders, OracleContender(pod_cores=rules.pod_cores)]
    scores = [Score() for _ in chosen]
    curves: list[Curve | None] = [None] * len(chosen)
    faults, nodes, frames, longest_s = Faults(), [], 0, 0.0
    made: dict[str, None] = {}
    plotted, cpus = None, 0
    for trace in traces:
        wanted = plot_node is not None and plotted is None and plot_node in ("", trace.node)
        if wanted:
            plotted, curves = trace.node, [Curve() for _ in chosen]
        cpus = trace.cpus if wanted else cpus if plotted else max(cpus, trace.cpus)
        runs = [
            _Run(contender, trace, rules, curve if wanted else None)
            for contender, curve in zip(chosen, curves, strict=True)
        ]
        count, last_s = _replay_node(trace, runs)
        nodes.append(trace.node)
        made |= {trace.rule: None} if trace.rule else {}
        frames += count
        longest_s = max(longest_s, last_s)
        for score, run in zip(scores, runs, strict=True):
            score.add(run.end())
        _gather(faults, trace.faults)
    *rows, oracle = (ReplayRow(c.name, s, curve) for c, s, curve in zip(chosen, scores, curves, strict=True))
    node_s = oracle.score.node_s
    return ReplayOutcome(
        tuple(rows), oracle.score, tuple(nodes), frames, longest_s, node_s, plotted, cpus, faults, tuple(made)
    )


def _replay_node(trace: Trace, runs: Sequence[_Run]) -> tuple[int, float]:
    """Number of frames, and the time of the last one."""
    # Contenders with the same bounds see the same view: it is made once.
    distinct = list(dict.fromkeys(run.bounds for run in runs))
    count, first_s, last_s = 0, None, 0.0
    for frame, loads in _with_loads(trace.to_replay()):
        views = {bounds: frame.view(bounds) for bounds in distinct}
        judge = frame.has_rates(views[distinct[0]])
        for run in runs:
            run.step(frame, views[run.bounds], loads, judge)
        first_s = frame.at_s if first_s is None else first_s
        count, last_s = count + 1, frame.at_s
    return count, last_s - (first_s or 0.0)


def _with_loads(frames: Iterator[ReplayFrame]) -> Iterator[tuple[ReplayFrame, tuple[FrameLoad, FrameLoad]]]:
    """Each frame with its load and that of the next one, which the oracle knows; behind the last it stays."""
    frame = next(frames, None)
    if frame is None:
        return
    load = frame.load
    for coming in frames:
        next_load = coming.load
        yield frame, (load, next_load)
        frame, load = coming, next_load
    yield frame, (load, load)


def _gather(into: Faults, found: Faults) -> None:
    into.lost_frames += found.lost_frames
    into.refused += found.refused
    into.gaps_s += found.gaps_s
    into.notes += found.notes
