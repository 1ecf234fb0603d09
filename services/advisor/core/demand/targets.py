"""`target_in_force` returns the target of an indicator in a region: the strictest of its services."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.advisor.core.model.containers import once_beside_cpu
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View
from shared.contracts.cluster.profiles import IndicatorTargets


@dataclass(frozen=True, slots=True)
class TargetInForce:
    """A target, and the service that set it; "" for the settings."""

    value: float
    service: str = ""


def target_in_force(
    view: View, target_of: Callable[[IndicatorTargets], float | None], default: float | None
) -> TargetInForce | None:
    """Return the lowest of all tenants' targets, where a tenant without a target has that of the settings.

    A service can therefore loosen a target only in a pool that it does not share. None: there is no target.
    """
    if _has_no_profile(view.containers):
        return None if default is None else TargetInForce(default)
    asked: set[tuple[float, str]] = set()
    for container in view.of(*CPU_TENANTS):
        profile = container.profile
        own = None if profile is None else target_of(profile.targets)
        if profile is not None and own is not None:
            asked.add((own, profile.service))
        elif default is not None:
            asked.add((default, ""))
    if not asked:
        return None if default is None else TargetInForce(default)
    return TargetInForce(*min(asked))


@once_beside_cpu
def _has_no_profile(containers: Sequence[ContainerView]) -> bool:
    return all(container.profile is None for container in containers)
