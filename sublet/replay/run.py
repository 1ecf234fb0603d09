"""The replay: frame by frame, every contender sees what it may see, and what it decided before is judged.

The sizes in force while a frame's demand arose are those decided on the frame before. What a contender sees of the
frame follows from them (sublet/replay/judging/seen.py).
"""

from collections.abc import Iterable, Iterator, Sequence

from services.advisor.core.model.view import View
from sublet.replay.batch import Batch, BatchRules
from sublet.replay.contender import Contender, Forecaster, Sizes, with_bounds
from sublet.replay.judging.regrow import Regrow
from sublet.replay.judging.seen import TenantQueue, as_seen, without_recorded_waits
from sublet.replay.judging.total import Curve, ReplayOutcome, ReplayRow, ReplayTotal
from sublet.replay.oracle import Oracle, OracleContender
from sublet.replay.score import Score
from sublet.replay.traces.frames import FrameLoad, ReplayFrame, Trace


class _Run:
    """One contender on one node."""

    def __init__(self, contender: Contender, trace: Trace, rules: BatchRules, curve: Curve | None) -> None:
        self.bounds = contender.bounds(trace)
        self.score, self.curve = Score(), curve
        self._cpus = trace.cpus
        self._decider = contender.start(trace)
        self._oracle = self._decider if isinstance(self._decider, Oracle) else None
        self._sizes: Sizes | None = None
        self._batch = Batch(rules)
        self._queue = TenantQueue()
        self._regrow, self._wanted_cores = Regrow(), 0.0
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
        if before is not None:
            self._regrow.offer(before.offered_cores, self._sizes.offered_cores, self._wanted_cores)
        self._wanted_cores = load.tenants_cores
        self._batch.offer(self._sizes.offered_cores, frame.at_s)

    def end(self) -> Score:
        """The score of the node, when all of its frames were replayed."""
        self.score.count_batch(self._batch)
        self.score.count_regrow(self._regrow)
        if isinstance(self._decider, Forecaster):
            self.score.forecasts = self._decider.forecasts
        return self.score

    def _judge(self, frame: ReplayFrame, view: View, load: FrameLoad, sizes: Sizes) -> View:
        """Count the time before a frame; what the contender may see of the frame after its own sizes."""
        # Of the batch work that runs by the offers so far: an offer of this frame has its effect in the next.
        wanted, batch_cores = load.tenants_cores, self._batch.cores
        violated = self.score.count(frame.covers_s, self._cpus, wanted, sizes, batch_cores) and frame.covers_s > 0
        self._regrow.pass_time(frame.covers_s, wanted)
        self.score.episodes += violated and not self._violated
        self._violated = violated
        if self.curve is not None:
            if not self.curve.at_s:
                self.curve.start_s = frame.at_s - frame.covers_s
            self.curve.add(frame.at_s, wanted, sizes, batch_cores, violated)
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
    total = ReplayTotal()
    for trace in traces:
        plot = plot_node is not None and total.plotted is None and plot_node in ("", trace.node)
        total.add([replay_node(trace, contenders, rules, plot)])
    return total.outcome()


def replay_node(trace: Trace, contenders: Sequence[Contender], rules: BatchRules, plot: bool) -> ReplayOutcome:
    """Replay one node, with or without curves.

    Raises:
        Refused: a policy raised.
    """
    chosen = [*contenders, OracleContender(pod_cores=rules.pod_cores)]
    runs = [_Run(contender, trace, rules, Curve() if plot else None) for contender in chosen]
    frames, last_s = _replay_frames(trace, runs)
    *rows, oracle = (
        ReplayRow(contender.name, run.end(), run.curve) for contender, run in zip(chosen, runs, strict=True)
    )
    return ReplayOutcome(
        rows=tuple(rows),
        oracle=oracle.score,
        nodes=(trace.node,),
        frames=frames,
        trace_s=last_s,
        node_s=oracle.score.node_s,
        plotted=trace.node if plot else None,
        cpus=trace.cpus,
        faults=trace.faults,
        rules=(trace.rule,) if trace.rule else (),
    )


def _replay_frames(trace: Trace, runs: Sequence[_Run]) -> tuple[int, float]:
    """Number of frames, and the time of the last one."""
    # Contenders with the same bounds see the same view, all of them the same containers: these are made once.
    distinct = list(dict.fromkeys(run.bounds for run in runs))
    count, first_s, last_s = 0, None, 0.0
    for frame, loads in _with_loads(trace.to_replay()):
        seen = frame.view(distinct[0])
        seen = without_recorded_waits(seen) if frame.may_wait else seen
        # All bounds are of the same CPUs: nothing else in a view depends on them.
        views = {bounds: with_bounds(seen, bounds) for bounds in distinct}
        judge = frame.has_rates(seen)
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
