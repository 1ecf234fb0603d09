"""PlanetLab days: one line a machine, its name, then 288 integers: percent of its CPU, one every 300 s from midnight.

A machine becomes a tenant that requests `pod_cores`; 100 percent of the machine are all of them.
"""

from collections.abc import Iterable
from functools import lru_cache

from shared.errors import Refused
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.tenants import TenantSeries

INTERVAL_S = 300.0
VALUES = 288
MAX_PERCENT = 100


def looks_like_planetlab(first_line: str) -> bool:
    """Whether a line is a name and 288 integers, or what is left of that."""
    _, *values = first_line.rstrip("\n").split(",")
    # Half a line is enough to know the format by; that it is cut is then said of the line.
    return len(values) > VALUES // 2 and all(value.strip().isdigit() for value in values)


def read_planetlab(name: str, lines: Iterable[str], pod_cores: float, faults: Faults) -> list[TenantSeries]:
    """The machines of a day; a line that cannot be used is told in `faults` and left out.

    Raises:
        Refused: no line can be used.
    """
    times = [number * INTERVAL_S for number in range(VALUES)]
    found: dict[str, TenantSeries] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        machine, *values = line.rstrip("\n").split(",")
        try:
            cores = [_percent(value) * pod_cores / MAX_PERCENT for value in values]
            if len(values) != VALUES:
                raise ValueError(f"{len(values)} values, want {VALUES}")
            if not machine or machine in found:
                raise ValueError(f"machine {machine!r} has no name of its own")
        except ValueError as error:
            faults.refuse(f"{name}: line {number}: {error}")
            continue
        found[machine] = TenantSeries(machine, times, cores)
    if not found:
        raise Refused(f"{name}: no line is a name and {VALUES} percentages", reason="malformed")
    return list(found.values())


@lru_cache(maxsize=256)
def _percent(text: str) -> int:
    """One value.

    Raises:
        ValueError: it is not a whole percentage.
    """
    value = int(text) if text.strip().isdigit() else -1
    if not 0 <= value <= MAX_PERCENT:
        raise ValueError(f"{text.strip()!r} is no whole percentage of 0 to {MAX_PERCENT}")
    return value
