"""`ExpectedUse` is the use of a node's pods, from the node's report and from pods that the report cannot include
yet.

It depends only on the node, so it is computed as reports and pods change, not for each pod that looks for a node.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from services.central.core.scheduling.amounts import Amounts

REPORT_INTERVAL_S = 60.0


@dataclass(frozen=True, slots=True)
class UsedByPod:
    """What a report says about one pod."""

    usage: Amounts
    prod: bool = False


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Use of a node at `measured_s`; `aggregated` by kind of percentile and duration in seconds."""

    measured_s: float
    usage: Amounts
    aggregated: Mapping[tuple[str, float], Amounts] = field(default_factory=dict)
    pods: Mapping[str, UsedByPod] = field(default_factory=dict)
    interval_s: float = REPORT_INTERVAL_S

    def percentile(self, kind: str, duration_s: float | None) -> Amounts | None:
        """Return the aggregate of a kind over a duration; by default the longest, and the current use if there is
        none."""
        reported = {over: usage for (of, over), usage in self.aggregated.items() if of == kind and usage}
        if duration_s is not None:
            return reported.get(duration_s)
        return reported[max(reported)] if reported else self.usage


@dataclass(frozen=True, slots=True)
class AssignedPod:
    """A pod on the node; `assigned_s` None: before anybody watched."""

    name: str
    estimate: Amounts
    prod: bool = False
    assigned_s: float | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Which percentile counts instead of the use of the moment; `duration_s` None: over the longest time."""

    kind: str
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class ExpectedUse:
    """Expected use of all pods of a node, and of its prod pods."""

    everything: Amounts
    prod: Amounts

    @classmethod
    def of(cls, report: LoadReport, pods: Iterable[AssignedPod], aggregate: Aggregate | None = None) -> Self:
        """Add to the report how far estimates exceed it, for pods that it does not show, or not for long."""
        unseen, unseen_prod, prod, estimates = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        for pod in pods:
            seen = report.pods.get(pod.name)
            used = seen.usage if seen is not None and seen.usage else None
            excess = _excess(pod.estimate, used or {}) if used is None or _is_young(pod, report) else {}
            unseen.update(excess)
            estimates.update(pod.estimate)
            if not pod.prod:
                continue
            if used is not None and seen is not None and seen.prod:
                prod.update(used)
                unseen_prod.update(excess)
            else:
                # The report attributes this pod's use to another class, so none of it is in the prod pods' use.
                unseen_prod.update(pod.estimate)
        measured = report.usage if aggregate is None else report.percentile(aggregate.kind, aggregate.duration_s)
        everything = estimates if measured is None else together(measured, unseen)
        return cls(everything=dict(everything), prod=together(prod, unseen_prod))


def together(one: Amounts, other: Amounts) -> dict[str, int]:
    """The sum of two maps."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _is_young(pod: AssignedPod, report: LoadReport) -> bool:
    """Whether the report's last interval does not have all of the pod."""
    return pod.assigned_s is not None and pod.assigned_s > report.measured_s - report.interval_s


def _excess(estimate: Amounts, used: Amounts) -> dict[str, int]:
    return {name: max(0, amount - used.get(name, 0)) for name, amount in estimate.items()}
