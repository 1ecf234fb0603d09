"""Holds the node's conditions from sample to sample: a confirmed pressure raises one, and it stays for a while after.

Facts: docs/facts/katalyst-eviction.md#conditions-and-taints. Absent input neither raises a condition nor ends one
(docs/facts/safety-rules.md#rule-1-absent-is-not-zero): only time in which fresh samples did not show it counts
towards its end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.evictor.core.plugin import Pressure, Silence
from services.evictor.core.taints.conditions import still_held, taint_of
from shared.contracts.kube.taint import TAINT_PREFIX, Cause, Taint, in_order


@dataclass(frozen=True, slots=True)
class DetectorFinding:
    """What one plugin found in one sample, and whether enough consecutive samples confirm it."""

    finding: Pressure | Silence
    confirmed: bool

    @property
    def condition(self) -> str | None:
        """The "<Name>/<Effect>" that it shows now, confirmed or not; one without a name is none."""
        shown = self.finding.condition if isinstance(self.finding, Pressure) else None
        return shown if shown and not shown.startswith("/") else None


@dataclass(frozen=True, slots=True)
class HeldCondition:
    """A condition that is set because of one plugin."""

    last_observed_s: float
    """When it was seen last, moved forward by all the time since in which no sample could show it."""
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class HeldConditions:
    """The conditions that are set, by plugin ("" if it is no longer known) and "<Name>/<Effect>"."""

    held: Mapping[tuple[str, str], HeldCondition] = field(default_factory=dict)
    looked_at_s: float | None = None

    def observe(
        self, findings: Mapping[str, DetectorFinding], t_s: float, *, transition_s: float, max_input_age_s: float
    ) -> "HeldConditions":
        """Return the conditions after one more sample.

        A condition begins when its plugin has confirmed it. It ends when it has not been seen for `transition_s`. Time
        in which its plugin knows nothing, or between samples further apart than `max_input_age_s`, does not count, so
        silence keeps the condition for as long as it lasts. A plugin that is not in `findings` (switched off, or set to
        observe) sets no condition.
        """
        since_s = t_s - self.looked_at_s if self.looked_at_s is not None else None
        held = {}
        for (plugin, condition), before in self.held.items():
            # "" is a taint of an earlier life without its cause: no plugin can be asked, so time alone ends it.
            if plugin and plugin not in findings:
                continue
            found = findings.get(plugin)
            blind = since_s is None or since_s > max_input_age_s or (found is not None and found.finding == "unknown")
            last_s = before.last_observed_s
            # The first sample after a start counts as seen, because the time without observation is unknown.
            if since_s is None or (found is not None and found.condition == condition):
                last_s = t_s
            elif blind:
                # Moved along instead of counted: time without observation ends no condition.
                last_s += since_s
            held[plugin, condition] = replace(before, last_observed_s=last_s)
        for plugin, found in findings.items():
            if isinstance(found.finding, Pressure) and found.confirmed and found.condition:
                held.setdefault((plugin, found.condition), HeldCondition(t_s, _cause(plugin, found.finding)))
        still = {key: one for key, one in held.items() if still_held(one.last_observed_s, t_s, transition_s)}
        return HeldConditions(dict(sorted(still.items())), t_s)

    def adopting(self, standing: Iterable[Taint], now_s: float) -> "HeldConditions":
        """Return the conditions together with those behind the taints of an earlier evictor, which count as seen
        now."""
        held = dict(self.held)
        for taint in standing:
            condition = f"{taint.key.removeprefix(TAINT_PREFIX)}/{taint.effect}"
            for cause in taint.causes or (None,):
                held.setdefault((cause.plugin if cause else "", condition), HeldCondition(now_s, cause))
        return replace(self, held=dict(sorted(held.items())))

    def taints(self, standing: Sequence[Taint], now: datetime) -> tuple[Taint, ...]:
        """Return the taints that should exist, ascending; an existing taint keeps its time."""
        since: dict[tuple[str, str], datetime | None] = {(t.key, t.effect): t.time_added for t in standing}
        causes: dict[tuple[str, str], list[Cause]] = {}
        for (_, condition), one in self.held.items():
            name, _, effect = condition.partition("/")
            if (taint := taint_of(name, effect)) is not None:
                causes.setdefault(taint, []).extend([one.cause] if one.cause else [])
        return in_order(
            Taint.model_validate(
                {"key": key, "effect": effect, "time_added": since.get((key, effect)) or now, "causes": tuple(behind)}
            )
            for (key, effect), behind in causes.items()
        )


def _cause(plugin: str, pressure: Pressure) -> Cause:
    return Cause(plugin=plugin, scope=pressure.scope, observed=pressure.observed, threshold=pressure.threshold)
