"""`target_in_force` says at which value an indicator of a region is kept: the strictest that its services ask for."""

from collections.abc import Callable
from dataclasses import dataclass

from services.advisor.core.model.view import CPU_TENANTS, View
from shared.contracts.cluster.profiles import IndicatorTargets


@dataclass(frozen=True, slots=True)
class TargetInForce:
    """A target, and the service whose it is; "" where it is that of the settings."""

    value: float
    service: str = ""


def target_in_force(
    view: View, target_of: Callable[[IndicatorTargets], float | None], default: float | None
) -> TargetInForce | None:
    """The least of all tenants' targets, where one without a target of its own has that of the settings.

    So a service may loosen a target only for pools of which no other service is. None: nobody has one.
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
