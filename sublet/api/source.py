"""A source of metrics: what it is, the host that it reads, and the figures that it offers.

A source is one file in `services/metrics/sources` that ends in `SOURCE = Source(...)`.
"""

from services.metrics.core.figures.figure import Damped, Gauge, Quotient, Rate, Ratio, Total
from services.metrics.core.figures.target import GROUPS, Kind, Target
from services.metrics.core.figures.values import Value
from services.metrics.core.reads.gates import GREW, WORKED, Gate, Moved
from services.metrics.core.source import Host, Source
from shared.core.text.kernel_text import key_values, meminfo_bytes

__all__ = (
    "GREW",
    "GROUPS",
    "WORKED",
    "Damped",
    "Gate",
    "Gauge",
    "Host",
    "Kind",
    "Moved",
    "Quotient",
    "Rate",
    "Ratio",
    "Source",
    "Target",
    "Total",
    "Value",
    "key_values",
    "meminfo_bytes",
)
