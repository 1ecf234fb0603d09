"""Report what the node offers to reclaimed pods: CPU and memory, as capacity and as allocatable.

The older place (`resourceAllocatable`) has the older names as in Katalyst's quick start; the current place
(`resources.allocatable`) has both spellings (docs/facts/katalyst-cluster.md#two-spellings). Capacity is what is
applied. Allocatable is what schedulers may use: the same, except that a rise is smoothed.
"""

from typing import Annotated, Any

from pydantic import Field

from services.reporter.core.field import FieldSettings, FieldView, Fragment, Offered, ReportField
from shared.contracts.kube.quantities import format_units, parse_units
from shared.contracts.pod import ALIASES, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY


class ReclaimedSettings(FieldSettings):
    """Which rises are too small to be written at once; a fall is always written at once.

    Facts: docs/facts/katalyst-cpu.md#reported-headroom.
    """

    min_rise_cpu_millis: Annotated[int, Field(ge=0, le=1_000_000)] = 300
    """A rise of the offered CPU below this many milli-cores waits for the refresh."""
    min_rise_memory_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = 300 << 20
    """A rise of the offered memory below this many bytes waits for the refresh."""


def fragment(view: FieldView, _settings: ReclaimedSettings) -> Fragment | None:
    """Return the offer of the newest allocation; None before the first allocation."""
    if view.allocation is None:
        return None
    applied = Offered(view.allocation.reclaimed_cpu_millis, view.allocation.reclaimed_memory_bytes)
    capacity, allocatable = _amounts(applied), _amounts(view.offered or applied)
    return {
        "status": {
            "resourceAllocatable": allocatable,
            "resourceCapacity": capacity,
            "resources": {"allocatable": _aliased(allocatable), "capacity": _aliased(capacity)},
        }
    }


def _amounts(offered: Offered) -> dict[str, str]:
    return {
        TUTORIAL_RECLAIMED_CPU: format_units(offered.cpu_millis),
        TUTORIAL_RECLAIMED_MEMORY: format_units(offered.memory_bytes),
    }


def _aliased(amounts: dict[str, str]) -> dict[str, str]:
    return amounts | {ALIASES[name]: amount for name, amount in amounts.items()}


def urgent(before: Fragment | None, now: Fragment | None, settings: ReclaimedSettings) -> bool:
    """Return whether the offer fell at all, rose by the minimum step, appeared or disappeared."""
    if before is None or now is None:
        return before is not now
    steps = {
        TUTORIAL_RECLAIMED_CPU: settings.min_rise_cpu_millis,
        TUTORIAL_RECLAIMED_MEMORY: settings.min_rise_memory_bytes,
    }
    for name, min_rise in steps.items():
        # A pod that is placed on what is no longer offered would be evicted: a fall cannot wait. And an offer that has
        # not changed is not urgent, not even where the smallest rise is set to 0.
        rise = _offered(now, name) - _offered(before, name)
        if rise < 0 or (rise > 0 and rise >= min_rise):
            return True
    return False


def _offered(document: Any, name: str) -> int:
    return parse_units(document["status"]["resourceAllocatable"][name])


FIELD = ReportField(ReclaimedSettings, fragment, urgent)
