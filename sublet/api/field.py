"""A report field of the reporter: what it is, and what it sees.

A field is one file in `services/reporter/fields` that ends in `FIELD = Field(...)`.
"""

from services.reporter.view import Field, FieldSettings, Offered, Part, View, changed, plain
from shared.contracts.allocation import Allocation
from shared.contracts.kube.quantities import format_millis, format_units
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeReading, NodeSample, NumaReading, PoolReading

__all__ = (
    "Allocation",
    "Field",
    "FieldSettings",
    "NodeReading",
    "NodeSample",
    "NumaReading",
    "Offered",
    "Part",
    "PoolReading",
    "ServiceHealth",
    "View",
    "changed",
    "format_millis",
    "format_units",
    "plain",
)
