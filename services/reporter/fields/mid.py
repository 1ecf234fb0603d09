"""Report Koordinator's mid resources, if the node offers them: mid-cpu and mid-memory.

They are listed next to the batch resources in `status.resources`, from which they are copied to the Node. A node that
offers none leaves them out, which differs from an offer of 0.

Facts: docs/facts/koordinator-batch.md#amount-of-a-mid-resource.
"""

from services.reporter.core.field import FieldView, Fragment, ReportField
from services.reporter.fields.batch import BatchFieldSettings, fell
from shared.contracts.kube.quantities import format_units
from shared.contracts.pod import MID_CPU, MID_MEMORY


class MidFieldSettings(BatchFieldSettings):
    """Which falls are too small to be written at once, as for the batch resources."""


def fragment(view: FieldView, _settings: MidFieldSettings) -> Fragment | None:
    """Return what is offered; None if nothing is."""
    if view.mid is None:
        return None
    amounts = {MID_CPU: format_units(view.mid.cpu_millis), MID_MEMORY: format_units(view.mid.memory_bytes)}
    return {"status": {"resources": {"allocatable": amounts, "capacity": amounts}}}


def urgent(before: Fragment | None, now: Fragment | None, settings: MidFieldSettings) -> bool:
    """Return whether an amount fell by more than may wait, appeared or disappeared."""
    return fell(before, now, (MID_CPU, MID_MEMORY), settings)


FIELD = ReportField(MidFieldSettings, fragment, urgent)
