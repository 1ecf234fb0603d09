"""Define the settings of metrics."""

from typing import Annotated

from pydantic import Field

from shared.settings import Settings

NAME = "metrics"


class MetricsSettings(Settings):
    """How often the node is measured, and what makes a pass happen earlier."""

    period_s: Annotated[float, Field(ge=0.1, le=60)] = 2.0
    """Longest time between two samples."""
    probe_s: Annotated[float, Field(ge=0.02, le=10)] = 0.1
    """How often the tripwire reads the tenants' CPU time, free memory and the list of pods."""
    min_gap_s: Annotated[float, Field(ge=0.02, le=10)] = 0.1
    """Shortest time between two passes that the kernel's pressure triggers wake."""
    tenant_step_cores: Annotated[float, Field(gt=0, le=1024, allow_inf_nan=False)] = 0.5
    """Rise of the tenants' CPU usage, in cores above their recent peak, that is worth a pass at once."""
    memory_watch_bytes: Annotated[int, Field(ge=0)] = 1 << 30
    """Free memory below which a pass is worth making at once; set it at or above the evictor's own threshold."""
