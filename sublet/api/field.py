"""A report field of the reporter: what it is, and what it sees.

A field is one file in `services/reporter/fields` that ends in `FIELD = ReportField(...)`.
"""

from services.reporter.core.field import FieldSettings, FieldView, Fragment, Offered, ReportField, changed, plain
from shared.contracts.allocation import Allocation
from shared.contracts.kube.quantities import format_millis, format_units, parse_units
from shared.contracts.readiness import ServiceHealth
from shared.contracts.sample import NodeReading, NodeSample, NumaReading, PoolReading

__all__ = (
    "Allocation",
    "FieldSettings",
    "FieldView",
    "Fragment",
    "NodeReading",
    "NodeSample",
    "NumaReading",
    "Offered",
    "PoolReading",
    "ReportField",
    "ServiceHealth",
    "changed",
    "format_millis",
    "format_units",
    "parse_units",
    "plain",
)
