"""Define the settings of the reporter."""

from typing import Annotated, Any

from pydantic import Field

from shared.contracts.services import NODE_SERVICES
from shared.core.quantities import Seconds
from shared.settings import Settings

NAME = "reporter"


class ReporterSettings(Settings):
    """How often the node speaks for itself, and how old its inputs may be."""

    ready_s: Seconds = 10.0
    """Seconds between two readiness heartbeats to central; a change is sent at once."""
    tick_s: Seconds = 1.0
    """Seconds after which the inputs are read again while no new allocation arrives."""
    refresh_s: Seconds = 60.0
    """Seconds after which changes that are not urgent (usage, tiny rises) are written."""
    max_health_age_s: Seconds = 10.0
    """A service silent for longer counts as not ok."""
    max_allocation_age_s: Seconds = 30.0
    """An older allocation keeps its values in the object, and a condition says that they are old."""
    max_sample_age_s: Seconds = 15.0
    """Usage from an older sample is left out."""
    rise_sample_s: Seconds = 5.0
    """Seconds between two samples of an offer that rises; a fall is reported at once."""
    rise_window_s: Seconds = 15.0
    """A rise is reported as the average over so many seconds; as long as one sample: as it is, by the largest step."""
    max_rise_cpu_millis: Annotated[int, Field(ge=1, le=1 << 40)] = 16_000
    """Milli-cores by which the reported CPU rises at most from sample to sample; large machines are back in minutes."""
    max_rise_memory_bytes: Annotated[int, Field(ge=1, le=1 << 60)] = 32 << 30
    """Bytes by which the reported memory rises at most from sample to sample."""
    services: tuple[str, ...] = NODE_SERVICES
    """The services whose health makes the node ready."""
    fields: dict[str, dict[str, Any]] = {}
    """Settings of single report fields, by the field's name: `fields: {reclaimed: {min_rise_cpu_millis: 100}}`."""
