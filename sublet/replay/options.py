"""What the options of `sublet record` and `sublet replay` have in common."""

import math

import typer


def finite(value: float | None) -> float | None:
    """An option's number; a range alone lets "nan" pass.

    Raises:
        typer.BadParameter: it is no finite number.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value
