"""Runs the plugins as detectors, each with its settings, its memory, its newest finding, and the reason if it does
not act.

A plugin's code is not trusted: it may raise or return anything. It then has detected nothing, and the others continue.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from services.evictor.core.arbiter.choice import ConfirmedPressure
from services.evictor.core.arbiter.confirmation import (
    Confirmation,
    ConfirmationRules,
    Evidence,
    HoldReason,
    cooling_left_s,
    hold_text,
    relieved,
)
from services.evictor.core.arbiter.guards import Refusal, Surroundings
from services.evictor.core.arbiter.ranking import Ranking, ranking_of
from services.evictor.core.plugin import (
    Candidate,
    PluginSettings,
    Pressure,
    Silence,
    View,
    checked_finding,
    checked_ranking,
)
from services.evictor.core.taints.held_conditions import DetectorFinding
from services.evictor.record.journal import IntentJournal
from services.evictor.settings import Configured
from shared.contracts.allocation import Condition

log = structlog.get_logger()


@dataclass
class DetectorState:
    """One plugin between two samples."""

    configured: Configured
    memory: Any
    """The plugin's own memory; only the plugin reads it."""
    confirmation: Confirmation
    finding: Pressure | Silence = "unknown"
    refusals: tuple[Refusal, ...] = ()
    hold: HoldReason | Literal["observe"] | None = None
    failure: str = ""
    """The error that its code raised at the last sample."""

    @property
    def settings(self) -> PluginSettings:
        """The plugin's checked section."""
        return self.configured.settings


class Detectors:
    """All enabled plugins, by their name in events, under the rules that hold for each and with their records."""

    def __init__(self, plugins: Mapping[str, Configured], rules: ConfirmationRules, journal: IntentJournal) -> None:
        self._states: dict[str, DetectorState] = {}
        self._view: View | None = None
        self._journal = journal
        self.configure(plugins, rules)

    def configure(self, plugins: Mapping[str, Configured], rules: ConfirmationRules) -> None:
        """Replace settings and rules; a plugin that stays keeps its memory."""
        states = {}
        for name, configured in plugins.items():
            state = self._states.get(name)
            if state is None:
                state = DetectorState(configured, configured.plugin.start(), Confirmation())
            state.configured = configured
            states[name] = state
        self._states, self._rules = states, rules

    def settings_of(self, name: str) -> PluginSettings:
        """The settings of one plugin."""
        return self._states[name].settings

    def evaluate(self, view: View) -> Mapping[str, Pressure | Silence]:
        """Evaluate every plugin on one sample; gives each one's finding."""
        self._view = view
        for state in self._states.values():
            try:
                memory, finding = state.configured.plugin.evaluate(state.memory, view, state.settings)
                state.memory, state.finding, state.failure = memory, checked_finding(finding), ""
            except Exception as error:  # noqa: BLE001 - one plugin that fails must not stop the others
                self._fail(state, error)
            # Also after a failure: "unknown" breaks the row, or a pressure of long ago would count as confirmed.
            state.confirmation = state.confirmation.observe(state.finding, view.t_s, self._rules)
            # Guards' refusals belong to their round; a plugin that is calm now spares no pod.
            state.refusals = ()
        return {name: state.finding for name, state in self._states.items()}

    def note_relief(self, findings: Mapping[str, Pressure | Silence]) -> None:
        """Record that a plugin's evictions have helped, once its pressure has gone."""
        for name, finding in findings.items():
            self._journal.write_record(name, relieved(self._journal.record_of(name), finding))

    def evidence(self, name: str, now_s: float) -> Evidence:
        """Whether the newest sample still speaks for an eviction that this plugin asked for."""
        state = self._states.get(name)
        if state is None or state.settings.mode == "observe":
            return "against"  # switched off while its eviction was under way: nobody wants it any more
        seen_at_s = state.confirmation.seen_at_s
        # Missing is neither for nor against: the executor waits for a sample, up to the intent's deadline.
        if seen_at_s is None or now_s - seen_at_s > self._rules.max_input_age_s or state.finding == "unknown":
            return "missing"
        return "against" if state.finding == "calm" else "for"

    def note_refusals(self, name: str, refusals: tuple[Refusal, ...]) -> None:
        """Remember whom the guards spared, for `state`."""
        self._states[name].refusals = refusals

    def ready(self, now_s: float, busy: set[str]) -> dict[str, ConfirmedPressure]:
        """The plugins whose pressure may act now, each with its ranking; `busy` are those that evict somebody."""
        ready = {}
        for name, state in self._states.items():
            pressure = state.confirmation.pressure
            hold = self._hold(name, now_s, busy)
            # Logged on change alone: a pressure that lasts an hour would write the same line with each sample.
            if hold != state.hold:
                log.info("pressure.judged", plugin=name, hold=hold, **_logged(pressure))
                state.hold = hold
            if hold is None and pressure is not None and self._view is not None:
                ready[name] = ConfirmedPressure(pressure, self._ranked_later(state, self._view, pressure))
        return ready

    def held_back(self, now_s: float) -> Iterator[tuple[str, Refusal]]:
        """The plugins that see pressure and were held back when `ready` was asked last, each with the reason."""
        for name, state in self._states.items():
            if state.hold is None or state.confirmation.pressure is None:
                continue
            if state.hold == "observe":
                says = "the plugin only observes: its mode is observe"
            else:
                rules, record = _own(self._rules, state), self._journal.record_of(name)
                says = hold_text(state.hold, state.confirmation, now_s, rules, record)
            yield name, Refusal("", state.hold, says=says)

    def state(self, now_s: float, busy: set[str]) -> dict[str, Any]:
        """Each plugin in JSON values."""
        return {
            name: {
                "mode": state.settings.mode,
                "finding": state.finding if isinstance(state.finding, str) else _figures(state.finding),
                "samples_in_a_row": state.confirmation.in_a_row,
                "evictions_without_relief": self._journal.record_of(name).without_relief,
                "hold": self._hold(name, now_s, busy),
                "spared": {refusal.pod: refusal.why for refusal in state.refusals},
            }
            for name, state in self._states.items()
        }

    def rankings(self, around: Surroundings) -> dict[str, Ranking]:
        """Return each plugin's ranking, whether its threshold is met or not, for plugins that can tell."""
        ranked = ((name, self._ranking(state, around)) for name, state in self._states.items())
        return {name: ranking for name, ranking in ranked if ranking is not None}

    def _ranking(self, state: DetectorState, around: Surroundings) -> Ranking | None:
        view, plugin, settings = self._view, state.configured.plugin, state.settings
        if view is None or state.finding == "unknown":
            return None
        try:
            found = state.finding if isinstance(state.finding, Pressure) else plugin.near(view, settings)
            if found is None:
                return None
            candidates = checked_ranking(plugin.rank(view, found, settings), view)
        except Exception as error:  # noqa: BLE001 - as in `evaluate`; a question must not stop the plugin
            log.warning("plugin.no_outlook", plugin=plugin.name, why=f"{type(error).__name__}: {error}")
            return None
        return ranking_of(found, candidates, around, met=found is state.finding)

    def cooling(self, now_s: float) -> dict[str, Any] | None:
        """The node's cooling after an eviction: it takes no new reclaimed work, or what was evicted would come back.

        Returns:
            A condition with `left_s`, the seconds until it ends; None: the node is not cooling.
        """
        # A plugin that only rehearses evicts no pod that could come back.
        enforcing = [(n, state) for n, state in self._states.items() if state.settings.mode == "enforce"]
        left_s, name = max(
            (
                (cooling_left_s(self._journal.record_of(name), now_s, _own(self._rules, state)), name)
                for name, state in enforcing
            ),
            default=(0.0, ""),
        )
        if left_s <= 0:
            return None
        message = f"no new reclaimed work for {left_s:.0f} s: {name} has evicted"
        return {**Condition(type="EvictionCooling", message=message).model_dump(), "left_s": left_s}

    def conditions(self, closed: str, now_s: float) -> list[dict[str, Any]]:
        """Return the conditions for operators, ascending by type; `closed` says why the ledger does not work, if it
        does not."""
        found = [Condition(type="EvictionLedgerUnavailable", message=closed)] if closed else []
        for name, state in self._states.items():
            found += _conditions_of(name, state, self._rules, self._journal.record_of(name).without_relief)
        listed = [condition.model_dump() for condition in found]
        if (cooling := self.cooling(now_s)) is not None:
            listed.append(cooling)
        return sorted(listed, key=lambda c: (c["type"], c["message"]))

    def findings(self) -> dict[str, DetectorFinding]:
        """Return the newest finding of each plugin that may act, for the node's taints."""
        return {
            # A taint keeps real pods away: a plugin in observe or dry-run sets none.
            name: DetectorFinding(state.finding, confirmed=state.confirmation.in_a_row >= self._rules.confirm_samples)
            for name, state in self._states.items()
            if state.settings.mode == "enforce"
        }

    def _hold(self, name: str, now_s: float, busy: set[str]) -> HoldReason | Literal["observe"] | None:
        state, record = self._states[name], self._journal.record_of(name)
        hold = state.confirmation.hold_reason(now_s, _own(self._rules, state), record, under_way=name in busy)
        return hold if hold is not None or state.settings.mode != "observe" else "observe"

    def _fail(self, state: DetectorState, error: Exception) -> None:
        """Record that a plugin's code failed: it has detected nothing, and restarts at the next sample."""
        failure = f"{type(error).__name__}: {error}"
        if failure != state.failure:
            log.error("plugin.failed", plugin=state.configured.plugin.name, why=failure)
        # The memory goes too: it may be what the code stumbled over, and would do so at every sample.
        state.memory, state.finding, state.failure = state.configured.plugin.start(), "unknown", failure

    def _ranked_later(
        self, state: DetectorState, view: View, pressure: Pressure
    ) -> Callable[[], tuple[Candidate, ...]]:
        """Return the plugin's ranking as a function, which is called only if a pod must be chosen."""
        plugin, settings = state.configured.plugin, state.settings

        def rank() -> tuple[Candidate, ...]:
            try:
                return checked_ranking(plugin.rank(view, pressure, settings), view)
            except Exception as error:  # noqa: BLE001 - as in `evaluate`
                self._fail(state, error)
                return ()

        return rank


def _own(rules: ConfirmationRules, state: DetectorState) -> ConfirmationRules:
    """The rules with the plugin's own settings; of the two cooling times the longer one counts."""
    own = state.settings
    return replace(rules, cooling_s=max(rules.cooling_s, own.cooling_s), met_for_s=own.met_for_s)


def _conditions_of(
    name: str, state: DetectorState, rules: ConfirmationRules, without_relief: int
) -> Iterator[Condition]:
    if state.failure:
        yield Condition(type="EvictionPluginFailed", message=f"{name}: {state.failure}")
    if without_relief >= rules.max_without_relief:
        evicted = f"{name}: {without_relief} rounds of evictions brought no relief"
        yield Condition(type="EvictionIneffective", message=f"{evicted}; no more until the pressure has gone")
    pressure = state.confirmation.pressure
    if pressure is not None and pressure.condition and state.confirmation.in_a_row >= rules.confirm_samples:
        kind, _, effect = pressure.condition.partition("/")
        mode = state.settings.mode
        untainted = "" if mode == "enforce" else f" ({mode}: no taint)"
        yield Condition(type=kind, message=f"{effect} by {name}, scope {pressure.scope}{untainted}")


def _logged(pressure: Pressure | None) -> dict[str, Any]:
    """What a line of the log says of a pressure: `level` and `why` have their own meaning there."""
    if pressure is None:
        return {}
    return {
        "scope": pressure.scope,
        "hard": pressure.hard,
        "observed": pressure.observed,
        "threshold": pressure.threshold,
        "why": pressure.why.rule,
        "numbers": pressure.why.numbers,
    }


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
