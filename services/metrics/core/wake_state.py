"""`WakeState` holds what metrics knows between two passes, and alone decides why the next one is due. Pure.

Each step returns a new state: after a probe, after a pass has begun, after it has ended.
"""

from dataclasses import dataclass, field, replace

from services.metrics.core.rest import Rest, same_picture
from services.metrics.core.wakeup import (
    KernelMemory,
    LastReported,
    Observation,
    PressureGate,
    Trigger,
    TripwireReading,
    WakeBounds,
    observation,
    reported,
    why_now,
)


@dataclass(frozen=True, slots=True)
class WakePace:
    """How often is probed and passed; see the settings of the same names."""

    period_s: float
    probe_s: float
    min_gap_s: float
    rest_period_s: float = 0.0
    """The period while the node rests; no longer than `period_s` where nothing but the tripwire would wake a pass."""
    rest_probe_s: float = 0.0
    """The time between two probes while the node rests; no shorter than `probe_s`."""

    @property
    def lateness_s(self) -> float:
        """How late a timer may be without a turn being skipped."""
        return self.probe_s / 2


@dataclass(frozen=True, slots=True)
class PassReport:
    """What a successful pass reports to the next wake-up."""

    trigger: Trigger
    at_s: float
    seen: Observation
    memory: KernelMemory
    node_cores: float | None = None


@dataclass(frozen=True, slots=True)
class WakeState:
    """The last two probes, the last pass, and what waits for an answer."""

    probe: TripwireReading
    probe_before: TripwireReading
    """Between these two lies what made a pass early."""
    tried_at_s: float
    """When the last pass began, whether or not it succeeded."""
    gate: PressureGate
    reported: LastReported | None = None
    follow_up: Trigger | None = "start"
    """Why a pass is promised for the next probe."""
    pressure_waits: bool = False
    """Whether the kernel has reported pressure since the last pass began."""
    whole: bool = False
    """Whether the pass that is due now was announced by an early one. It reads everything that moves
    (`reads.gates`), which the early one skipped to be quick."""
    rest: Rest = field(default_factory=Rest)
    at_pass: TripwireReading | None = None
    """The last probe before the last pass."""
    from_rest: bool = False
    """Whether the last pass ended a rest, and has not succeeded. It is tried again soon, once: after a whole period the
    last sample would be older than readers take for fresh."""

    @classmethod
    def at_start(cls, now_s: float, min_gap_s: float) -> "WakeState":
        """The state before anything was read."""
        nothing = TripwireReading(now_s, None, None, None)
        return cls(nothing, nothing, now_s, PressureGate(min_gap_s))

    def pressure_told(self) -> "WakeState":
        """Return the state after the kernel has reported pressure."""
        return replace(self, pressure_waits=True)

    def answers_pressure(self, now_s: float) -> bool:
        """Return whether pressure is pending and the gate lets it trigger a pass."""
        return self.pressure_waits and self.gate.allows(now_s)

    def next_probe_s(self, pace: WakePace) -> float:
        """The time until the next probe, in seconds: longer while the node rests and is not short of memory."""
        # A promised pass waits for its probe, and memory that is nearly gone may go within one.
        at_ease = self.follow_up is None and self.reported is not None and self.reported.watch_armed
        rests = at_ease and self.rest.lasts(self.tried_at_s)
        return max(pace.probe_s, pace.rest_probe_s) if rests else pace.probe_s

    def has_just_probed(self, now_s: float, pace: WakePace) -> bool:
        """Whether a probe was made so short a time ago that a rate since then would be mere noise."""
        return now_s - self.probe.at_s < pace.lateness_s

    def after_probe(
        self, probe: TripwireReading, bounds: WakeBounds, pace: WakePace
    ) -> tuple["WakeState", Trigger | None]:
        """Return the state after one more probe, and why a pass is due now, if it is."""
        # Not by `replace`: this step is made several times a second, and `replace` costs as much as all the rest of it.
        now = WakeState(
            probe, self.probe, self.tried_at_s, self.gate, self.reported, self.follow_up, self.pressure_waits,
            rest=self.rest, at_pass=self.at_pass, from_rest=self.from_rest,
        )  # fmt: skip
        # First: this second sample was promised to the service that confirms the first.
        if self.follow_up is not None:
            return replace(now, follow_up=None, whole=True), self.follow_up
        if self.reported is not None:
            trigger = why_now(self.reported, observation(self.probe, probe), bounds)
            # An early pass is followed by another one probe later: its containers' rates then cover
            # the short time as well.
            if trigger is not None:
                return replace(now, follow_up=trigger), trigger
        if self.answers_pressure(probe.at_s):
            return now, "psi"
        # From the last try, not the last success: a host that cannot be read is not asked without pause.
        return now, "period" if self._period_is_over(probe, pace) else None

    def _period_is_over(self, probe: TripwireReading, pace: WakePace) -> bool:
        since_s = probe.at_s - self.tried_at_s + pace.lateness_s
        if self.from_rest and since_s >= pace.min_gap_s:
            return True
        if since_s < pace.period_s:
            return False
        if since_s >= pace.rest_period_s or not self.rest.lasts(self.tried_at_s):
            return True
        # The probes' changes since the last pass are too small to wake at once, but they are no rest.
        if self.reported is None or self.at_pass is None:
            return True
        seen = observation(self.at_pass, probe)
        return not same_picture(self.reported.seen, seen, self.reported.memory_total_bytes)

    def pass_begins(self, now_s: float) -> "WakeState":
        """The state once a pass begins: also one that fails has had its turn."""
        from_rest = self.rest.lasts(self.tried_at_s)
        return replace(self, tried_at_s=now_s, pressure_waits=False, at_pass=self.probe, from_rest=from_rest)

    def pods_listed(self, generation: int) -> "WakeState":
        """The state once the pods of a generation are being listed: this change has had its early pass."""
        if self.reported is None:
            return self
        seen = replace(self.reported.seen, pods_generation=generation)
        return replace(self, reported=replace(self.reported, seen=seen))

    def pass_ended(self, report: PassReport, bounds: WakeBounds, pace: WakePace) -> "WakeState":
        """The state after a pass that has succeeded."""
        before, gate, follow_up = self.reported, self.gate, self.follow_up
        # Only these passes are paced: steady pressure without news is asked ever less often.
        if report.trigger == "psi":
            news = before is not None and why_now(before, report.seen, bounds) is not None
            gate = gate.after(report.at_s, news=news, min_gap_s=pace.min_gap_s, max_gap_s=pace.period_s)
        now = reported(before, report.seen, report.memory, report.at_s, bounds)
        if before is not None and before.watch_armed and not now.watch_armed:
            follow_up = "memory"  # whatever brought it to light: who acts on it needs a second sample
        rest = Rest()
        if report.trigger == "period":
            rest = self.rest.after(report.seen, report.node_cores, report.memory.total_bytes, report.at_s)
        # Also `whole`: pressure may ask for the next pass before a probe does, and that one was not promised.
        return replace(
            self, reported=now, gate=gate, follow_up=follow_up, whole=False, rest=rest, from_rest=False
        )  # fmt: skip
