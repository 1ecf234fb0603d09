"""Wakes the task that makes passes: by a timer that probes, and by the kernel's pressure.

The timer itself probes: to wake the task for it costs as much as the probe.
"""

import asyncio
import contextlib

from services.metrics.core.figures.values import Point
from services.metrics.core.wake_state import PassReport, WakePace, WakeState
from services.metrics.core.wakeup import Trigger, TripwireReading, WakeBounds
from services.metrics.ports import MetricsPorts
from services.metrics.settings import MetricsSettings
from shared.errors import Unavailable
from shared.ports import Clock


class Waker:
    """Probes between passes, and decides why the next pass is made."""

    def __init__(self, ports: MetricsPorts, clock: Clock, settings: MetricsSettings) -> None:
        self._ports, self._clock = ports, clock
        self._state = WakeState.at_start(clock.monotonic(), settings.min_gap_s)
        self.configure(settings)
        self._news: asyncio.Future[Trigger]
        self._timer: asyncio.TimerHandle

    def configure(self, settings: MetricsSettings) -> None:
        """Replace periods and bounds, from the next probe on; again after each pass, for triggers come and go."""
        self._bounds = WakeBounds(
            settings.tenant_step_cores, settings.memory_watch_bytes, peak_hold_s=settings.period_s
        )
        # Without the kernel's triggers only tenants would end a rest in time.
        armed = self._ports.alarm.armed
        self._pace = WakePace(
            settings.period_s, settings.probe_s, settings.min_gap_s,
            rest_period_s=settings.longest_period_s if armed else settings.period_s,
            rest_probe_s=settings.longest_probe_s if armed else settings.probe_s,
        )  # fmt: skip
        self._settings = settings

    async def next_trigger(self) -> Trigger:
        """Wait until the next pass is due, and return the reason."""
        self._news = asyncio.get_running_loop().create_future()
        # Pressure that came during the pass is looked at now: its event is taken, and the kernel will not repeat it.
        self._set_timer(0.0 if self._state.pressure_waits else self._state.next_probe_s(self._pace))
        try:
            return await self._news
        finally:
            self._timer.cancel()

    @property
    def longest_period_s(self) -> float:
        """The longest time between two passes: that of a node at rest."""
        return max(self._pace.period_s, self._pace.rest_period_s)

    @property
    def whole_pass(self) -> bool:
        """Whether the next pass reads all that moves."""
        return self._state.whole

    def pass_begins(self, now_s: float) -> None:
        """A pass begins."""
        # The pass reads the tenants itself: a later probe with an earlier sum would show them going back.
        self._ports.tripwire.forget()
        self._state = self._state.pass_begins(now_s)

    def pods_listed(self, generation: int) -> None:
        """The pods of a generation are being listed."""
        self._state = self._state.pods_listed(generation)

    def pass_ended(self, report: PassReport) -> None:
        """A pass has succeeded."""
        self._state = self._state.pass_ended(report, self._bounds, self._pace)
        # After each pass: cgroups of new pods have pressure files of their own.
        self._ports.alarm.arm(self._on_pressure)
        self.configure(self._settings)

    @property
    def tenant_usage_before(self) -> Point | None:
        """The tenants' CPU time at the probe before the last one; None where it could not be read."""
        probe = self._state.probe_before
        return None if probe.tenant_usage_ns is None else Point(probe.tenant_usage_ns, probe.at_s)

    def _set_timer(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        # Pressure or a timer may arrive after the pass was decided, and before the waiting task runs.
        if self._news.done():
            return
        try:
            trigger = self._due()
        except Exception as error:  # noqa: BLE001 - the task that waits dies of it, and the process with it
            self._news.set_exception(error)
            return
        if trigger is None:
            self._set_timer(self._state.next_probe_s(self._pace))
        else:
            self._news.set_result(trigger)

    def _on_pressure(self) -> None:
        self._state = self._state.pressure_told()
        self._timer.cancel()
        self._on_timer()

    def _due(self) -> Trigger | None:
        """Return why a pass is due now, or None."""
        now_s, pace = self._clock.monotonic(), self._pace
        # Woken by pressure right after a probe.
        if self._state.has_just_probed(now_s, pace):
            return "psi" if self._state.answers_pressure(now_s) else None
        self._state, trigger = self._state.after_probe(self._read_probe(now_s), self._bounds, pace)
        return trigger

    def _read_probe(self, now_s: float) -> TripwireReading:
        usage_ns, free_bytes = self._ports.tripwire.probe()
        generation = None
        with contextlib.suppress(Unavailable):  # the next pass asks again and says so
            generation = self._ports.pods.generation()
        return TripwireReading(now_s, usage_ns, free_bytes, generation)
