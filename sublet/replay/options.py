"""Common options of `sublet record` and `sublet replay`."""

import math

import typer

LEAST_CORES, MOST_CORES, MOST_SWEPT = 0.001, 8192.0, 16


def finite(value: float | None) -> float | None:
    """An option's number; a range alone lets "nan" pass.

    Raises:
        typer.BadParameter: it is no finite number.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value


def cores_list(text: str) -> tuple[float, ...]:
    """Amounts of cores with commas between them.

    Raises:
        typer.BadParameter: one is no number, or out of bounds, or there are too many.
    """
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: want numbers with commas between them", param_hint="--pod-cores") from None
    if not all(LEAST_CORES <= cores <= MOST_CORES for cores in found):
        raise typer.BadParameter(
            f"{text!r}: want a number from {LEAST_CORES:g} to {MOST_CORES:g}", param_hint="--pod-cores"
        )
    if len(found) > MOST_SWEPT or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r}: want at most {MOST_SWEPT} amounts, each once", param_hint="--pod-cores")
    return found
