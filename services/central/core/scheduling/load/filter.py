"""`judge_load` decides whether a node would be too loaded with another pod (docs/facts/scheduling.md#load)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.central.core.scheduling.amounts import Amounts
from services.central.core.scheduling.load.expected_use import Aggregate, ExpectedUse, together

Percents = Mapping[str, int]

THRESHOLDS: Percents = {"cpu": 65, "memory": 95}
EXPIRATION_S = 180.0


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Percent of the allocatable amounts above which a node takes no further pod; 0 is off."""

    thresholds: Percents = field(default_factory=lambda: dict(THRESHOLDS))
    prod_thresholds: Percents = field(default_factory=dict)
    aggregated_thresholds: Percents = field(default_factory=dict)
    aggregate: Aggregate | None = None
    expiration_s: float = EXPIRATION_S
    filter_expired: bool = True
    schedule_when_expired: bool = False


Measure = Literal["usage", "prod_usage", "aggregated_usage"]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The thresholds that hold for one pod, and what they are compared with."""

    percents: Percents
    measure: Measure

    @classmethod
    def of(cls, limits: LoadLimits, *, prod: bool, daemonset: bool) -> "Ceiling | None":
        """Return the first thresholds that are set: a prod pod's own, those of a percentile, those of current use;
        None: all off.

        A DaemonSet's pod cannot run elsewhere, so it is never refused.
        """
        if daemonset:
            return None
        if prod and any(percent > 0 for percent in limits.prod_thresholds.values()):
            found = cls(limits.prod_thresholds, "prod_usage")
        elif limits.aggregate is not None and limits.aggregated_thresholds:
            found = cls(limits.aggregated_thresholds, "aggregated_usage")
        else:
            found = cls(limits.thresholds, "usage")
        return found if any(percent > 0 for percent in found.percents.values()) else None


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    """Whether a pod may come, and the figures; `estimated` None: nothing was weighed."""

    reason: str | None
    estimated: Amounts | None = None
    usage_percent: Percents = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against the pod."""
        return self.reason is None


PASSES = LoadVerdict(None)


def judge_load(ceiling: Ceiling, pod_estimate: Amounts, expected: ExpectedUse, allocatable: Amounts) -> LoadVerdict:
    """Compare the node's use with the pod on it with the thresholds; the first resource by name is the reason."""
    known = expected.prod if ceiling.measure == "prod_usage" else expected.everything
    estimated = together(known, pod_estimate)
    percents, reason = {}, None
    for name in sorted(ceiling.percents):
        capacity = allocatable.get(name, 0)
        if ceiling.percents[name] <= 0 or capacity <= 0:
            continue
        percents[name] = (200 * estimated.get(name, 0) + capacity) // (2 * capacity)
        if reason is None and percents[name] > ceiling.percents[name]:
            reason = f"{'aggregated_usage' if ceiling.measure == 'aggregated_usage' else 'usage'}:{name}"
    return LoadVerdict(reason, estimated, percents)


def judge_age(age_s: float, limits: LoadLimits) -> LoadVerdict | None:
    """Return the verdict on an expired report; None: it is fresh, or counts anyway."""
    if age_s < limits.expiration_s or not limits.filter_expired:
        return None
    return PASSES if limits.schedule_when_expired else LoadVerdict("metric_expired")
