"""Settings of central."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from services.central.core import Rules
from shared.settings import Settings

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class CentralSettings(Settings):
    """How central listens, and where the configuration of all nodes comes from."""

    rules: Rules = Rules()
    """When nodes count as late and when everything pauses."""
    assess_s: Seconds = 1.0
    """Seconds between two assessments of the ledger."""
    probe_s: Seconds = 5.0
    """Seconds between two messages of central to itself."""
    reconcile_s: Seconds = 30.0
    """Seconds between two looks at streams and bucket, so that a server that lost them gets them back."""
    retry_s: Seconds = 1.0
    """Seconds until the next try while the bus is away."""
    config_file: Path | None = None
    """YAML file with the sections of all services; None: `config.yaml` in the state folder."""
    config_poll_s: Seconds = 2.0
    """Seconds between two looks at that file."""
