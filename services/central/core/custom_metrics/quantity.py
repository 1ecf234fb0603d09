"""A value as the API's quantity: ten significant digits, rounded up to thousandths, in its shortest form."""

from decimal import ROUND_UP, Decimal

from shared.contracts.kube.quantities import format_units

LARGEST = (1 << 63) - 1
"""Of a quantity; the API server caps there, too."""


def quantity_of(value: float) -> str:
    """A finite value as a quantity; up means away from 0, as of every quantity."""
    millis = int((Decimal(f"{value:.10g}") * 1000).to_integral_value(ROUND_UP))
    if abs(millis) >= LARGEST * 1000:
        return format_units(LARGEST if millis > 0 else -LARGEST)
    units, rest = divmod(millis, 1000)
    return f"{millis}m" if rest else format_units(units)
