"""The plugins at work: each with its settings, its memory, what it last saw, and why it does not act."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from services.evictor.act.executor import Evidence
from services.evictor.core.arbiter.choice import Ready
from services.evictor.core.arbiter.guards import Refusal, Surroundings
from services.evictor.core.arbiter.outlook import Outlook, outlook
from services.evictor.core.arbiter.watch import Hold, Rules, Watch, cooling_left_s, hold_text, relieved
from services.evictor.core.plugin import (
    Candidate,
    PluginSettings,
    Pressure,
    Silence,
    View,
    checked_finding,
    checked_ranking,
)
from services.evictor.core.taints.held import Told
from services.evictor.record.clerk import Clerk
from services.evictor.settings import Configured
from shared.contracts.allocation import Condition

log = structlog.get_logger()


@dataclass
class _Seat:
    configured: Configured
    memory: Any
    watch: Watch
    finding: Pressure | Silence = "unknown"
    refusals: tuple[Refusal, ...] = ()
    hold: Hold | Literal["observe"] | None = None
    failure: str = ""
    """What its code raised at the last sample."""


class Panel:
    """All enabled plugins, by their name in events."""

    def __init__(self, plugins: Mapping[str, Configured]) -> None:
        self._seats: dict[str, _Seat] = {}
        self._view: View | None = None
        self.configure(plugins)

    def configure(self, plugins: Mapping[str, Configured]) -> None:
        """Swap the settings; a plugin that stays keeps its memory."""
        seats = {}
        for name, configured in plugins.items():
            seat = self._seats.get(name)
            if seat is None:
                seat = _Seat(configured, configured.plugin.start(), Watch())
            seat.configured = configured
            seats[name] = seat
        self._seats = seats

    def settings_of(self, name: str) -> PluginSettings:
        """The settings of one plugin."""
        return self._seats[name].configured.settings

    def look(self, view: View, rules: Rules) -> Mapping[str, Pressure | Silence]:
        """Show a sample to every plugin."""
        self._view = view
        for seat in self._seats.values():
            plugin, settings = seat.configured.plugin, seat.configured.settings
            try:
                memory, finding = plugin.evaluate(seat.memory, view, settings)
                seat.memory, seat.finding, seat.failure = memory, checked_finding(finding), ""
            except Exception as error:  # noqa: BLE001 - one plugin that fails must not stop the others
                self._fail(seat, error)
            seat.watch = seat.watch.see(seat.finding, view.t_s, rules)
            seat.refusals = ()
        return {name: seat.finding for name, seat in self._seats.items()}

    def note_relief(self, findings: Mapping[str, Pressure | Silence], clerk: Clerk) -> None:
        """A pressure that has gone makes its plugin's evictions count as having helped."""
        for name, finding in findings.items():
            clerk.keep(name, relieved(clerk.record_of(name), finding))

    def evidence(self, name: str, now_s: float, rules: Rules) -> Evidence:
        """Whether the newest sample still speaks for an eviction that this plugin asked for."""
        seat = self._seats.get(name)
        if seat is None or seat.configured.settings.mode == "observe":
            return "against"
        seen_at_s = seat.watch.seen_at_s
        if seen_at_s is None or now_s - seen_at_s > rules.max_input_age_s or seat.finding == "unknown":
            return "missing"
        return "against" if seat.finding == "calm" else "for"

    def note_refusals(self, name: str, refusals: tuple[Refusal, ...]) -> None:
        """Remember whom the guards spared, for `state`."""
        self._seats[name].refusals = refusals

    def ready(self, now_s: float, rules: Rules, clerk: Clerk, busy: set[str]) -> dict[str, Ready]:
        """Plugins whose pressure may act now, with their ranking."""
        ready = {}
        for name, seat in self._seats.items():
            hold = self._hold(name, seat, now_s, rules, clerk, busy)
            if hold != seat.hold:
                log.info("pressure.judged", plugin=name, hold=hold, **_figures(seat.watch.pressure))
                seat.hold = hold
            if hold is None and seat.watch.pressure is not None and self._view is not None:
                ready[name] = Ready(seat.watch.pressure, self._ranking(seat, self._view, seat.watch.pressure))
        return ready

    def held(self, now_s: float, rules: Rules, clerk: Clerk) -> Iterator[tuple[str, Refusal]]:
        """The plugins that see pressure and were held back when `ready` was asked last, with what holds them."""
        for name, seat in self._seats.items():
            if seat.hold is None or seat.watch.pressure is None:
                continue
            if seat.hold == "observe":
                says = "the plugin only observes: its mode is observe"
            else:
                says = hold_text(seat.hold, seat.watch, now_s, _own(rules, seat), clerk.record_of(name))
            yield name, Refusal("", seat.hold, says=says)

    def state(self, now_s: float, rules: Rules, clerk: Clerk, busy: set[str]) -> dict[str, Any]:
        """Each plugin in JSON values."""
        return {
            name: {
                "mode": seat.configured.settings.mode,
                "finding": seat.finding if isinstance(seat.finding, str) else _figures(seat.finding),
                "samples_in_a_row": seat.watch.in_a_row,
                "evictions_without_relief": clerk.record_of(name).without_relief,
                "hold": self._hold(name, seat, now_s, rules, clerk, busy),
                "spared": {refusal.pod: refusal.why for refusal in seat.refusals},
            }
            for name, seat in self._seats.items()
        }

    def outlooks(self, around: Surroundings) -> dict[str, Outlook]:
        """Who would go next by each plugin, under its pressure or short of it; only where a plugin can say."""
        return {name: seen for name, seat in self._seats.items() if (seen := self._outlook(seat, around)) is not None}

    def _outlook(self, seat: _Seat, around: Surroundings) -> Outlook | None:
        view, plugin, settings = self._view, seat.configured.plugin, seat.configured.settings
        if view is None or seat.finding == "unknown":
            return None
        try:
            found = seat.finding if isinstance(seat.finding, Pressure) else plugin.near(view, settings)
            if found is None:
                return None
            candidates = checked_ranking(plugin.rank(view, found, settings), view)
        except Exception as error:  # noqa: BLE001 - as in `look`; a question must not stop the plugin
            log.warning("plugin.no_outlook", plugin=plugin.name, why=f"{type(error).__name__}: {error}")
            return None
        return outlook(found, candidates, around, met=found is seat.finding)

    def cooling(self, now_s: float, rules: Rules, clerk: Clerk) -> dict[str, Any] | None:
        """After an eviction the node takes on no new reclaimed work for a while, or what was evicted would come back.

        Returns:
            A condition with `left_s`, the seconds until it ends; None: the node is not cooling.
        """
        enforcing = [(n, seat) for n, seat in self._seats.items() if seat.configured.settings.mode == "enforce"]
        left_s, name = max(
            ((cooling_left_s(clerk.record_of(name), now_s, _own(rules, seat)), name) for name, seat in enforcing),
            default=(0.0, ""),
        )
        if left_s <= 0:
            return None
        message = f"no new reclaimed work for {left_s:.0f} s: {name} has evicted"
        return {**Condition(type="EvictionCooling", message=message).model_dump(), "left_s": left_s}

    def conditions(self, rules: Rules, clerk: Clerk, closed: str, now_s: float) -> list[dict[str, Any]]:
        """What an operator should know, ascending by type."""
        found = [Condition(type="EvictionLedgerUnavailable", message=closed)] if closed else []
        for name, seat in self._seats.items():
            if seat.failure:
                found.append(Condition(type="EvictionPluginFailed", message=f"{name}: {seat.failure}"))
            rounds = clerk.record_of(name).without_relief
            if rounds >= rules.max_without_relief:
                message = f"{name}: {rounds} rounds of evictions brought no relief; no more until the pressure has gone"
                found.append(Condition(type="EvictionIneffective", message=message))
            pressure = seat.watch.pressure
            if pressure is not None and pressure.condition and seat.watch.in_a_row >= rules.confirm_samples:
                kind, _, effect = pressure.condition.partition("/")
                mode = seat.configured.settings.mode
                word = "" if mode == "enforce" else f" ({mode}: no taint)"
                found.append(Condition(type=kind, message=f"{effect} by {name}, scope {pressure.scope}{word}"))
        told = [c.model_dump() for c in found]
        if (cooling := self.cooling(now_s, rules, clerk)) is not None:
            told.append(cooling)
        return sorted(told, key=lambda c: (c["type"], c["message"]))

    def told(self, rules: Rules) -> dict[str, Told]:
        """What each plugin that may act has found in the newest sample, for the node's taints."""
        return {
            name: Told(seat.finding, confirmed=seat.watch.in_a_row >= rules.confirm_samples)
            for name, seat in self._seats.items()
            if seat.configured.settings.mode == "enforce"
        }

    def _hold(
        self, name: str, seat: _Seat, now_s: float, rules: Rules, clerk: Clerk, busy: set[str]
    ) -> Hold | Literal["observe"] | None:
        hold = seat.watch.holds(now_s, _own(rules, seat), clerk.record_of(name), under_way=name in busy)
        return hold if hold is not None or seat.configured.settings.mode != "observe" else "observe"

    def _fail(self, seat: _Seat, error: Exception) -> None:
        """A plugin whose code failed has seen nothing, and starts anew at the next sample."""
        failure = f"{type(error).__name__}: {error}"
        if failure != seat.failure:
            log.error("plugin.failed", plugin=seat.configured.plugin.name, why=failure)
        seat.memory, seat.finding, seat.failure = seat.configured.plugin.start(), "unknown", failure

    def _ranking(self, seat: _Seat, view: View, pressure: Pressure) -> Callable[[], tuple[Candidate, ...]]:
        plugin, settings = seat.configured.plugin, seat.configured.settings

        def rank() -> tuple[Candidate, ...]:
            try:
                return checked_ranking(plugin.rank(view, pressure, settings), view)
            except Exception as error:  # noqa: BLE001 - as in `look`
                self._fail(seat, error)
                return ()

        return rank


def _own(rules: Rules, seat: _Seat) -> Rules:
    """With what the plugin sets for itself; of the two times of cooling the longer counts."""
    own = seat.configured.settings
    return replace(rules, cooling_s=max(rules.cooling_s, own.cooling_s), met_for_s=own.met_for_s)


def _figures(pressure: Pressure | None) -> dict[str, Any]:
    if pressure is None:
        return {}
    return {
        "scope": pressure.scope,
        "level": "hard" if pressure.hard else "soft",
        "observed": pressure.observed,
        "threshold": pressure.threshold,
        "why": pressure.why.model_dump(mode="json"),
    }
