"""`target_in_force` returns the target of an indicator in a region: the strictest of its services."""

from collections.abc import Callable
from dataclasses import dataclass

from services.advisor.core.model.view import CPU_TENANTS, View
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
