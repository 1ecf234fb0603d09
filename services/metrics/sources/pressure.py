"""Read pressure stall information: of the node from `/proc/pressure`, and on cgroup v2 of pools and containers."""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import GROUPS, Target
from services.metrics.core.reads.gates import GREW, PAUSE_S, WORKED, Gate
from services.metrics.core.source import Host, Source
from services.metrics.sources.sched_wait import WAIT_COUNTER
from shared.contracts.sample import Pressure

_RESOURCES = ("cpu", "memory", "io")


def parse(text: str) -> Pressure | None:
    """The averages of a pressure file; None where it holds no "some" line (kernels before 5.13 have no "full" for CPU).

    Raises:
        ValueError: an average is not a number.
    """
    averages = {}
    for line in text.splitlines():
        level, *pairs = line.split()
        averages[level] = {name: float(value) for name, _, value in (pair.partition("=") for pair in pairs)}
    some, full = averages.get("some"), averages.get("full", {})
    if some is None:
        return None
    return Pressure(
        some_avg10_percent=some.get("avg10", 0.0),
        some_avg60_percent=some.get("avg60", 0.0),
        full_avg10_percent=full.get("avg10", 0.0),
    )


def _read(host: Host, target: Target) -> dict[str, Pressure]:
    if target.kind == "node":
        texts = {name: host.text(f"proc/pressure/{name}") for name in _RESOURCES}
    elif host.version == 2:
        texts = {name: host.group_text(target, f"{name}.pressure", name) for name in _RESOURCES}
    else:
        # v1 measures stalls of the whole machine only.
        return {}
    parsed = {name: parse(text) for name, text in texts.items() if text}
    return {f"{name}_pressure": pressure for name, pressure in parsed.items() if pressure is not None}


_FIGURES = tuple(Gauge(f"{name}_pressure") for name in _RESOURCES)
SOURCE = Source(
    {"node": _FIGURES, **dict.fromkeys(GROUPS, _FIGURES)},
    _read,
    cost="moderate",
    # The advisor derives from it what tenants could not get, if their waiting tasks are not counted.
    gates={"container": Gate(30.0, (WORKED, GREW), PAUSE_S, stands_in_for=WAIT_COUNTER)},
)
