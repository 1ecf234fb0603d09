"""Report Koordinator's batch resources, where they are offered: batch-cpu and batch-memory under both prefixes.

They stand beside Katalyst's names in `status.resources`, from where they come to the Node. A node that offers none
leaves them out: that is not an offer of 0.

Facts: docs/facts/koordinator.md#batch-resources.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField
from shared.contracts.kube.quantities import format_units, parse_units
from shared.contracts.pod import BATCH_ALIASES, BATCH_CPU, BATCH_MEMORY


class BatchFieldSettings(FieldSettings):
    """Which falls are too small to be written at once: what tenants use moves with every sample."""

    urgent_fall_percent: Annotated[int, Field(ge=0, le=100)] = 5
    """A fall by more than this percent of what was written is written at once; all else waits for the refresh."""


def fragment(view: FieldView, _settings: BatchFieldSettings) -> Fragment | None:
    """What is offered; None where nothing is."""
    if view.batch is None:
        return None
    amounts = {
        BATCH_CPU: format_units(view.batch.cpu_millis),
        BATCH_MEMORY: format_units(view.batch.memory_bytes),
    }
    amounts |= {first: amounts[today] for first, today in BATCH_ALIASES.items()}
    return {"status": {"resources": {"allocatable": amounts, "capacity": amounts}}}


def urgent(before: Fragment | None, now: Fragment | None, settings: BatchFieldSettings) -> bool:
    """A fall that matters; coming and going."""
    return fell(before, now, (BATCH_CPU, BATCH_MEMORY), settings)


def fell(before: Fragment | None, now: Fragment | None, names: Iterable[str], settings: BatchFieldSettings) -> bool:
    """Whether one of these amounts fell by more than may wait; coming and going."""
    if before is None or now is None:
        return before is not now
    kept = 100 - settings.urgent_fall_percent
    return any(_amount(now, name) * 100 < _amount(before, name) * kept for name in names)


def _amount(document: Any, name: str) -> int:
    return parse_units(document["status"]["resources"]["allocatable"][name])


FIELD = ReportField(BatchFieldSettings, fragment, urgent)
