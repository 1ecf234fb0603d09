"""New figures of a pod's containers from a vertical autoscaler: the recommendation within its policies, or none at
all.

A pod that could not have the new figures completely keeps all of its old ones (docs/facts/service-profiles.md#vpa).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from shared.core.cgroups.kube_qos import kube_qos
from shared.errors import Refused

Strategy = Literal["Inplace", "BestEffortInplace", "Off", "Recreate"]
PodMatching = Literal["All", "ForFreshPod", "ForHistoricalPod"]
ControlledValues = Literal["RequestsOnly", "LimitsOnly", "RequestsAndLimits"]
Hindrance = Literal["negative", "request_above_limit", "qos_class_changes"]
Amounts = Mapping[str, int]

EVERY_CONTAINER: Final = "*"
COMPUTE: Final = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class ContainerFigures:
    """Requests and limits of a container: CPU in milli, memory in bytes."""

    requests: Amounts = field(default_factory=dict)
    limits: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResizePolicy:
    """What of a container may change, and within which figures."""

    controlled_values: ControlledValues = "RequestsAndLimits"
    controlled_resources: Sequence[str] = COMPUTE
    min_allowed: Amounts = field(default_factory=dict)
    max_allowed: Amounts = field(default_factory=dict)

    def apply(self, now: ContainerFigures, wanted: ContainerFigures) -> ContainerFigures:
        """The container with what it may have of the recommendation."""
        requests, limits = now.requests, now.limits
        if self.controlled_values != "LimitsOnly":
            requests = {**requests, **self._within(wanted.requests)}
        if self.controlled_values != "RequestsOnly":
            limits = {**limits, **self._within(wanted.limits)}
        return ContainerFigures(requests, limits)

    def _within(self, wanted: Amounts) -> dict[str, int]:
        found = {}
        for name, amount in wanted.items():
            if name in self.controlled_resources:
                at_most = min(amount, self.max_allowed.get(name, amount))
                found[name] = max(at_most, self.min_allowed.get(name, at_most))
        return found


@dataclass(frozen=True, slots=True)
class PodTarget:
    """The containers of a pod after the change, or why it stays unchanged; empty without a reason: nothing changes."""

    containers: Mapping[str, ContainerFigures] = field(default_factory=dict)
    hindrance: Hindrance | None = None


def check_strategy(strategy: Strategy) -> None:
    """Refuse what would kill pods in order to change them.

    Raises:
        Refused: the strategy is Recreate; reason `strategy_unsupported`.
    """
    if strategy == "Recreate":
        raise Refused(
            "podUpdatingStrategy Recreate: pods are changed in place alone; want Inplace, BestEffortInplace or Off",
            reason="strategy_unsupported",
        )


def concerns(matching: PodMatching, *, vpa_created_s: float, pod_created_s: float) -> bool:
    """Whether a pod of this age is meant: fresh ones were created after the autoscaler, historical ones were not."""
    fresh = pod_created_s > vpa_created_s
    return matching == "All" or fresh == (matching == "ForFreshPod")


def pod_target(
    containers: Mapping[str, ContainerFigures],
    recommended: Mapping[str, ContainerFigures],
    policies: Mapping[str, ResizePolicy],
) -> PodTarget:
    """Return the new figures of a pod; a container changes only with a recommendation and a policy."""
    after = dict(containers)
    for name, figures in containers.items():
        policy, wanted = policies.get(name) or policies.get(EVERY_CONTAINER), recommended.get(name)
        if policy is not None and wanted is not None:
            after[name] = policy.apply(figures, wanted)
    if after == containers:
        return PodTarget()
    hindrance = _hindrance(containers, after)
    return PodTarget(after) if hindrance is None else PodTarget(hindrance=hindrance)


def _hindrance(before: Mapping[str, ContainerFigures], after: Mapping[str, ContainerFigures]) -> Hindrance | None:
    for one in after.values():
        if any(amount < 0 for amount in (*one.requests.values(), *one.limits.values())):
            return "negative"
    for one in after.values():
        if any(amount > one.limits.get(name, amount) for name, amount in one.requests.items()):
            return "request_above_limit"
    return None if _qos(before) == _qos(after) else "qos_class_changes"


def _qos(containers: Mapping[str, ContainerFigures]) -> str:
    return kube_qos((one.requests, one.limits) for one in containers.values())
