"""Conditions from sample to sample: raised by a confirmed pressure, and held for a while after it.

Facts: docs/facts/katalyst-eviction.md#conditions-and-taints. Absent input neither raises a condition nor lets one
go (docs/facts/safety-rules.md#rule-1-absent-is-not-zero): only time in which fresh samples did not show it counts
towards its end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from services.evictor.core.plugin import Pressure, Silence
from services.evictor.core.taints.conditions import NodeCondition, node_marks, still_held
from shared.contracts.kube.taint import TAINT_PREFIX, Cause, Taint, in_order


@dataclass(frozen=True, slots=True)
class Told:
    """What one plugin found in one sample, and whether it has found it often enough in a row."""

    finding: Pressure | Silence
    confirmed: bool

    @property
    def condition(self) -> str | None:
        """The "<Name>/<Effect>" that it shows now, confirmed or not; one without a name is none."""
        shown = self.finding.condition if isinstance(self.finding, Pressure) else None
        return shown if shown and not shown.startswith("/") else None


@dataclass(frozen=True, slots=True)
class Held:
    """A condition that stands because of one plugin."""

    last_observed_s: float
    """When it was seen last, put later by all the time since in which nobody could see it."""
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is held, by plugin ("" where nobody knows any more) and "<Name>/<Effect>"."""

    held: Mapping[tuple[str, str], Held] = field(default_factory=dict)
    looked_at_s: float | None = None

    def see(self, told: Mapping[str, Told], t_s: float, *, transition_s: float, max_input_age_s: float) -> "Conditions":
        """One more sample.

        A condition begins when its plugin has confirmed it. It ends when it has not been seen for `transition_s`; time
        in which its plugin knows nothing, or between samples further apart than `max_input_age_s`, does not count, so
        that silence holds it for as long as the silence lasts. A plugin that is not in `told` (switched off, or told
        only to observe) holds nothing.
        """
        since_s = t_s - self.looked_at_s if self.looked_at_s is not None else None
        held = {}
        for (plugin, condition), before in self.held.items():
            if plugin and plugin not in told:
                continue
            said = told.get(plugin)
            blind = since_s is None or since_s > max_input_age_s or (said is not None and said.finding == "unknown")
            last_s = before.last_observed_s
            if since_s is None or (said is not None and said.condition == condition):
                last_s = t_s
            elif blind:
                last_s += since_s
            held[plugin, condition] = replace(before, last_observed_s=last_s)
        for plugin, said in told.items():
            if isinstance(said.finding, Pressure) and said.confirmed and said.condition:
                held.setdefault((plugin, said.condition), Held(t_s, _cause(plugin, said.finding)))
        kept = {key: one for key, one in held.items() if still_held(one.last_observed_s, t_s, transition_s)}
        return Conditions(dict(sorted(kept.items())), t_s)

    def adopting(self, standing: Iterable[Taint], now_s: float) -> "Conditions":
        """With the taints that an evictor before this one has left: they are held as if they were seen now."""
        held = dict(self.held)
        for taint in standing:
            condition = f"{taint.key.removeprefix(TAINT_PREFIX)}/{taint.effect}"
            for cause in taint.causes or (None,):
                held.setdefault((cause.plugin if cause else "", condition), Held(now_s, cause))
        return replace(self, held=dict(sorted(held.items())))

    def taints(self, standing: Sequence[Taint], now: datetime) -> tuple[Taint, ...]:
        """The taints that should stand, ascending; one that stands already keeps the time at which it was added."""
        since: dict[tuple[str, str], datetime | None] = {(t.key, t.effect): t.time_added for t in standing}
        causes: dict[tuple[str, str], list[Cause]] = {}
        for (_, condition), one in self.held.items():
            for mark in node_marks([_node_condition(condition)]):
                causes.setdefault((mark.key, mark.effect), []).extend([one.cause] if one.cause else [])
        return in_order(
            Taint.model_validate(
                {"key": key, "effect": effect, "time_added": since.get((key, effect)) or now, "causes": tuple(behind)}
            )
            for (key, effect), behind in causes.items()
        )


def _node_condition(said: str) -> NodeCondition:
    name, _, effect = said.partition("/")
    return NodeCondition(name=name, type="NODE", effects=[effect])


def _cause(plugin: str, pressure: Pressure) -> Cause:
    return Cause(plugin=plugin, scope=pressure.scope, observed=pressure.observed, threshold=pressure.threshold)
