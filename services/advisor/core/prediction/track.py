"""A track follows one predictor in use: its past step by step, and whether the needs kept within its bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.advisor.core.prediction.predictor import StepModel

MAX_MISSING_STEPS = 1
"""A single step without a reading repeats the one before; after more of them the past starts again."""
ROUNDING = 1 + 1e-9


def step_of(now_s: float, step_s: float) -> int:
    """The number of the step that a reading belongs to: it speaks for the time before it."""
    return math.ceil(now_s / step_s) - 1


def breaks(open_step: int, step: int) -> bool:
    """Return whether the past cannot continue with a reading of this step: too many are missing, or the clock went
    back."""
    return not 0 <= step - open_step <= 1 + MAX_MISSING_STEPS


@dataclass(frozen=True, slots=True)
class TrackRules:
    """When a predictor counts as wrong, and for how long."""

    max_miss_ratio: float
    """More misses than this part of the last `window_steps` predictions, and it is wrong."""
    window_steps: int
    return_after_s: float
    """Time after the last miss streak until the predictor is used again."""

    @property
    def max_misses(self) -> float:
        """The largest number of misses that is still right."""
        return self.max_miss_ratio * self.window_steps


@dataclass(frozen=True, slots=True)
class Pending:
    """A bound whose horizon has not ended."""

    bound_cores: float
    last_step: int
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    """State of one predictor. Sizes are bounded by the history, the horizon and the window."""

    model: StepModel
    past: tuple[float, ...] = ()
    """Largest need of each closed step, oldest first."""
    step: int | None = None
    """Number of the open step; None before the first reading."""
    largest: float = 0.0
    """Largest need of the open step."""
    pending: tuple[Pending, ...] = ()
    outcomes: tuple[bool, ...] = ()
    """Of the newest predictions, oldest first: True for a miss."""
    wrong_s: float = -math.inf
    """When it last had too many misses."""

    @property
    def misses(self) -> int:
        """Predictions of the window that were exceeded."""
        return sum(self.outcomes)

    def observe(self, need_cores: float, now_s: float, rules: TrackRules) -> "Track":
        """The state after one more reading."""
        step = step_of(now_s, self.model.step_s)
        # Outcomes stay, because a gap says nothing about the quality of the predictor.
        if self.step is None or breaks(self.step, step):
            return replace(self, past=(), pending=(), step=step, largest=need_cores)
        track = self
        # A single missing step repeats the one before it: `largest` is carried over while steps are closed.
        while track.step is not None and track.step < step:
            track = track._closed(now_s, rules)
        return replace(track, largest=max(track.largest, need_cores) if step == self.step else need_cores)

    def _closed(self, now_s: float, rules: TrackRules) -> "Track":
        """The state after the open step ends: it judges the pending predictions, and a new one is made."""
        step = self.step or 0
        # Before the new bound is made: a prediction is judged only by steps that follow it.
        judged = [replace(p, missed=p.missed or self.largest > p.bound_cores * ROUNDING) for p in self.pending]
        ended = tuple(p.missed for p in judged if p.last_step <= step)
        outcomes = (*self.outcomes, *ended)[-rules.window_steps :]
        past = (*self.past, self.largest)[-self.model.history_steps :]
        pending = [p for p in judged if p.last_step > step]
        if len(past) == self.model.history_steps:
            pending.append(Pending(self.model.bound_cores(past), step + self.model.horizon_steps))
        # Moves on while the predictor is wrong, so the time to its return begins when it is right again.
        wrong_s = now_s if sum(outcomes) > rules.max_misses else self.wrong_s
        return replace(self, past=past, pending=tuple(pending), outcomes=outcomes, wrong_s=wrong_s, step=step + 1)

    @property
    def is_whole(self) -> bool:
        """Return whether enough of the past is known for a bound; the open step counts."""
        return self.step is not None and len(self.past) >= self.model.history_steps - 1

    def bound_cores(self) -> float:
        """The bound from now on; only where the past `is_whole`."""
        return self.model.bound_cores((*self.past, self.largest)[-self.model.history_steps :])

    def is_wrong(self, now_s: float, rules: TrackRules) -> bool:
        """Whether it had too many misses, now or not long ago."""
        return self.misses > rules.max_misses or now_s - self.wrong_s < rules.return_after_s


def tracks_of(models: Sequence[StepModel], before: Sequence[Track]) -> tuple[Track, ...]:
    """Return a track for each model: the previous one if the model is the same, otherwise a new one."""
    known = {track.model.step_s: track for track in before}
    kept = ((model, known.get(model.step_s)) for model in models)
    return tuple(
        track if track is not None and (track.model is model or track.model == model) else Track(model)
        for model, track in kept
    )
