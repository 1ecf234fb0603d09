"""How good predictions of need are: each policy's demand against the need that came, frame by frame.

A policy's demand is taken as its bound for the tenants' need until the horizon has ended, before any reserve is added.
Every policy is asked by the very function that the advisor calls, with its default settings unless others are given.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from services.advisor.core.demand.need import tenants_need
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import View
from services.advisor.core.observation.sample_view import view_of
from services.advisor.core.policy import Policy, PolicySettings
from services.advisor.core.prediction.predictor import StepModel
from services.advisor.core.prediction.track import ROUNDING
from sublet.replay.traces.frames import Trace


@dataclass(frozen=True, slots=True)
class Subject:
    """A policy that is measured."""

    label: str
    policy: Policy[Any, Any]
    settings: PolicySettings


@dataclass(slots=True)
class Tally:
    """Sums over the judged predictions of one policy."""

    predictions: int = 0
    covered: int = 0
    above_cores: float = 0.0
    """By how much demands were above the need that came; 0 where they were below."""
    below_cores: float = 0.0
    need_cores: float = 0.0
    set_aside: int = 0
    """Predictions that canonical made instead."""

    def add(self, bound_cores: float, need_cores: float, *, set_aside: bool) -> None:
        """Judge one prediction."""
        self.predictions += 1
        self.covered += need_cores <= bound_cores * ROUNDING
        self.above_cores += max(0.0, bound_cores - need_cores)
        self.below_cores += max(0.0, need_cores - bound_cores)
        self.need_cores += need_cores
        self.set_aside += set_aside

    def figures(self) -> dict[str, float | int | None]:
        """Coverage in percent, the rest as means in cores; None where nothing was judged."""
        count = self.predictions
        if not count:
            return {"predictions": 0, "coverage_percent": None, "above_cores": None, "below_cores": None,
                    "need_cores": None, "canonical_percent": None}  # fmt: skip
        return {
            "predictions": count,
            "coverage_percent": round(100 * self.covered / count, 2),
            "above_cores": round(self.above_cores / count, 3),
            "below_cores": round(self.below_cores / count, 4),
            "need_cores": round(self.need_cores / count, 3),
            "canonical_percent": round(100 * self.set_aside / count, 2),
        }


@dataclass(slots=True)
class _Open:
    """A prediction whose horizon has not ended."""

    until_s: float
    bound_cores: float
    set_aside: bool
    judged: bool
    largest: float = 0.0


def tally(traces: Iterable[Trace], subjects: Sequence[Subject], model: StepModel) -> dict[str, Tally]:
    """What each policy is worth on these traces over the model's horizon, after the time that fills its past."""
    tallies = {subject.label: Tally() for subject in subjects}
    for trace in traces:
        bounds = Bounds.of(trace.cpus, smt=trace.smt)
        runs = [(_Run(subject, model), tallies[subject.label]) for subject in subjects]
        for frame in trace.frames():
            view = view_of(frame.sample, bounds)
            need = tenants_need(view)
            if need.measured_cores is None:
                continue
            for run, sums in runs:
                for ended in run.step(view, frame.at_s, need.measured_cores, need.asked_cores):
                    sums.add(ended.bound_cores, ended.largest, set_aside=ended.set_aside)
    return tallies


class _Run:
    """One policy on one node."""

    def __init__(self, subject: Subject, model: StepModel) -> None:
        self._subject, self._model = subject, model
        self._state = subject.policy.start()
        self._open: deque[_Open] = deque()

    def step(self, view: View, now_s: float, need_cores: float, asked_cores: float) -> Iterator[_Open]:
        """Take one frame; the predictions whose horizon has ended with it."""
        for prediction in self._open:
            prediction.largest = max(prediction.largest, need_cores)
        while self._open and self._open[0].until_s <= now_s:
            ended = self._open.popleft()
            if ended.judged:
                yield ended
        self._state, demand = self._subject.policy.judge(self._state, view, now_s, self._subject.settings)
        by_canonical = any("canonical decides" in reason.rule for reason in demand.why)
        self._open.append(
            _Open(
                until_s=now_s + self._model.horizon_s,
                bound_cores=demand.cores - asked_cores,
                set_aside=by_canonical,
                judged=now_s >= self._model.history_steps * self._model.step_s,
            )
        )
