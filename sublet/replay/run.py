"""The replay: frame by frame, every contender sees what it may see, and what it decided before is judged.

The sizes in force while a frame's demand arose are those decided on the frame before. Tenants cannot use more than
they have: where they want more, a contender sees their use cut to what it gave them, and their load averages whole.
Of batch work it sees what runs by its own offers.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View
from services.advisor.core.observation.sample_view import has_no_rates, view_of
from sublet.replay.batch import Batch, BatchRules, after_offer
from sublet.replay.contender import Contender, Sizes
from sublet.replay.score import Score
from sublet.replay.traces.frames import Faults, Frame, FrameLoad, Trace, load_of


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
        self._cpus, self._rules = trace.cpus, rules
        self._decider = contender.start(trace)
        self._sizes: Sizes | None = None
        self._batch = Batch()

    def step(self, frame: Frame, view: View, load: FrameLoad, judge: bool) -> None:
        """Judge what is in force, then let the contender decide anew."""
        # Of the batch work that runs by the offers so far: an offer of this frame has its effect in the next.
        wanted, batch_cores = load.tenants_cores, self._batch.cores(self._rules)
        if self._sizes is not None:
            violated = self.score.count(frame.covers_s, self._cpus, wanted, self._sizes, batch_cores)
            if self._curve is not None:
                if not self._curve.at_s:
                    self._curve.start_s = frame.at_s - frame.covers_s
                self._curve.add(frame.at_s, wanted, self._sizes, batch_cores, violated and frame.covers_s > 0)
            used_cores = self._sizes.batch_use_cores(batch_cores)
            # What the contender may see follows from its own sizes: no two have the same view from here on.
            view = as_seen(view, wanted, self._sizes.tenants_cores, used_cores, load.system_cores)
        # By a sample without rates the service does not decide either.
        if not judge:
            return
        before, self._sizes = self._sizes, self._decider.decide(view, load.system_cores, frame.at_s)
        if before is not None and (before.tenants_cores, before.batch_cores) != (
            self._sizes.tenants_cores,
            self._sizes.batch_cores,
        ):
            self.score.size_changes += 1
        self._batch = after_offer(self._batch, self._sizes.offered_cores, frame.at_s, self._rules)
        self.score.evictions = self._batch.evicted


def as_seen(view: View, wanted_cores: float, had_cores: float, batch_cores: float, system_cores: float) -> View:
    """The view with the tenants' use cut to what they had, and with the batch work of the replay, in cores.

    FrameLoad averages stay: who waits for a CPU counts in them.
    """
    node_cores = min(wanted_cores, had_cores) + batch_cores + system_cores
    view = replace(view, reclaimed_usage_cores=batch_cores, node_usage_cores=node_cores)
    if wanted_cores <= had_cores:
        return view
    part = had_cores / wanted_cores
    containers = tuple(_cut(c, part) if c.qos in CPU_TENANTS else c for c in view.containers)
    pool = None if view.tenants_usage_cores is None else view.tenants_usage_cores * part
    return replace(view, containers=containers, tenants_usage_cores=pool)


def _cut(container: ContainerView, part: float) -> ContainerView:
    usage = container.cpu.usage_cores
    if usage is None:
        return container
    return replace(container, cpu=replace(container.cpu, usage_cores=usage * part))


def replay(
    traces: Iterable[Trace], contenders: Sequence[Contender], rules: BatchRules, plot_node: str | None = None
) -> ReplayOutcome:
    """Replay all traces through all contenders in one pass. `plot_node`: keep the curves of that node ("" the first).

    Raises:
        Refused: a policy raised.
    """
    scores = [Score() for _ in contenders]
    curves: list[Curve | None] = [None] * len(contenders)
    faults, nodes, frames, longest_s = Faults(), [], 0, 0.0
    made: dict[str, None] = {}
    plotted, cpus = None, 0
    for trace in traces:
        wanted = plot_node is not None and plotted is None and plot_node in ("", trace.node)
        if wanted:
            plotted, curves = trace.node, [Curve() for _ in contenders]
        cpus = trace.cpus if wanted else cpus if plotted else max(cpus, trace.cpus)
        runs = [
            _Run(contender, trace, rules, curve if wanted else None)
            for contender, curve in zip(contenders, curves, strict=True)
        ]
        count, last_s = _replay_node(trace, runs)
        nodes.append(trace.node)
        made |= {trace.rule: None} if trace.rule else {}
        frames += count
        longest_s = max(longest_s, last_s)
        for score, run in zip(scores, runs, strict=True):
            score.add(run.score)
        _gather(faults, trace.faults)
    rows = tuple(ReplayRow(c.name, s, curve) for c, s, curve in zip(contenders, scores, curves, strict=True))
    node_s = scores[0].node_s if scores else 0.0
    return ReplayOutcome(rows, tuple(nodes), frames, longest_s, node_s, plotted, cpus, faults, tuple(made))


def _replay_node(trace: Trace, runs: Sequence[_Run]) -> tuple[int, float]:
    """Number of frames, and the time of the last one."""
    # Contenders with the same bounds see the same view: it is made once.
    distinct = list(dict.fromkeys(run.bounds for run in runs))
    count, first_s, last_s = 0, None, 0.0
    for frame in trace.frames():
        load = load_of(frame.sample)
        views = {bounds: view_of(frame.sample, bounds) for bounds in distinct}
        judge = not has_no_rates(frame.sample, views[distinct[0]])
        for run in runs:
            run.step(frame, views[run.bounds], load, judge)
        first_s = frame.at_s if first_s is None else first_s
        count, last_s = count + 1, frame.at_s
    return count, last_s - (first_s or 0.0)


def _gather(into: Faults, found: Faults) -> None:
    into.lost_frames += found.lost_frames
    into.refused += found.refused
    into.gaps_s += found.gaps_s
    into.notes += found.notes
