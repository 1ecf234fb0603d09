"""Report Koordinator's batch resources, if the node offers them: batch-cpu and batch-memory under both prefixes.

They are listed next to Katalyst's names in `status.resources`, from which they are copied to the Node. A node that
offers none leaves them out, which differs from an offer of 0.

Facts: docs/facts/koordinator.md#batch-resources.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from services.reporter.core.field import FieldSettings, FieldView, Fragment, ReportField
from shared.contracts.kube.quantities import format_units, parse_units
from shared.contracts.pod import BATCH_ALIASES, BATCH_CPU, BATCH_MEMORY


class BatchFieldSettings(FieldSettings):
    """Which falls are too small to be written at once, because use moves with every sample."""

    urgent_fall_percent: Annotated[int, Field(ge=0, le=100)] = 5
    """A fall by more than this percent of the written value is written at once; other changes wait for the refresh."""


def fragment(view: FieldView, _settings: BatchFieldSettings) -> Fragment | None:
    """Return what is offered; None if nothing is."""
    if view.batch is None:
        return None
    amounts = {
        BATCH_CPU: format_units(view.batch.cpu_millis),
        BATCH_MEMORY: format_units(view.batch.memory_bytes),
    }
    amounts |= {first: amounts[today] for first, today in BATCH_ALIASES.items()}
    return {"status": {"resources": {"allocatable": amounts, "capacity": amounts}}}


def urgent(before: Fragment | None, now: Fragment | None, settings: BatchFieldSettings) -> bool:
    """Return whether an amount fell by more than may wait, appeared or disappeared."""
    return fell(before, now, (BATCH_CPU, BATCH_MEMORY), settings)


def fell(before: Fragment | None, now: Fragment | None, names: Iterable[str], settings: BatchFieldSettings) -> bool:
    """Return whether one of these amounts fell by more than may wait, appeared or disappeared."""
    if before is None or now is None:
        return before is not now
    kept = 100 - settings.urgent_fall_percent
    return any(_amount(now, name) * 100 < _amount(before, name) * kept for name in names)


def _amount(document: Any, name: str) -> int:
    return parse_units(document["status"]["resources"]["allocatable"][name])


FIELD = ReportField(BatchFieldSettings, fragment, urgent)
