"""From the frames of a trace to the tenants' need over time, as the policy `model` sees it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from services.advisor.core.demand.need import tenants_need
from services.advisor.core.model.machine import Bounds
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.prediction.track import MAX_MISSING_STEPS, breaks, step_of
from sublet.replay.traces.frames import Trace

Reading = tuple[float, float]
"""Time in seconds, and the tenants' need in cores."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The need of one node's tenants over time."""

    source: str
    """The name of the file that they come from."""
    node: str
    readings: tuple[Reading, ...]

    @property
    def interval_s(self) -> float:
        """The usual time between two readings; infinite for fewer than two."""
        times = [at_s for at_s, _ in self.readings]
        return median(b - a for a, b in pairwise(times)) if len(times) > 1 else float("inf")


def needs_of(source: str, trace: Trace) -> Needs:
    """The need in each frame in which it is measured."""
    bounds = Bounds.of(trace.cpus, smt=trace.smt)
    seen = ((frame.at_s, tenants_need(view_of(frame.sample, bounds)).measured_cores) for frame in trace.frames())
    return Needs(source, trace.node, tuple((at_s, need) for at_s, need in seen if need is not None))


def runs_of(readings: Iterable[Reading], step_s: float) -> list[list[float]]:
    """The largest need of each step, in runs without a break: what a `Track` would have had as its past."""
    runs: list[list[float]] = []
    open_step: int | None = None
    for at_s, need in readings:
        step = step_of(at_s, step_s)
        if open_step is None or breaks(open_step, step):
            runs.append([need])
        elif step == open_step:
            runs[-1][-1] = max(runs[-1][-1], need)
        else:
            missing = step - open_step - 1
            runs[-1] += [runs[-1][-1]] * min(missing, MAX_MISSING_STEPS)
            runs[-1].append(need)
        open_step = step
    return runs


def windows(run: Sequence[float], history: int, horizon: int) -> Iterable[tuple[Sequence[float], float]]:
    """Each whole past of a run with the largest need of the `horizon` steps after it."""
    for end in range(history, len(run) - horizon + 1):
        yield run[end - history : end], max(run[end : end + horizon])
