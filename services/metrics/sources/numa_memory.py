"""Read a container's memory by NUMA node (`memory.numa_stat`, pages on v1 and bytes on v2)."""

import os
from collections.abc import Mapping

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Value
from services.metrics.core.reads.gates import GREW, PAUSE_S, Gate
from services.metrics.core.source import Host, Source
from shared.contracts.sample import GroupNuma
from shared.core.cgroups.knobs import Version

_LINES: dict[Version, tuple[str, str, int]] = {
    # v1's plain lines leave out what groups below the container use.
    1: ("hierarchical_anon", "hierarchical_file", os.sysconf("SC_PAGE_SIZE")),
    2: ("anon", "file", 1),
}
"""Names of its lines, and their unit in bytes."""


def _read(host: Host, target: Target) -> Mapping[str, Value]:
    text = host.group_text(target, "memory.numa_stat", "memory")
    if not text:
        return {}
    anon_name, file_name, unit = _LINES[host.version]
    anon, file = _line(text, anon_name), _line(text, file_name)
    spread = tuple(
        GroupNuma(numa=numa, anon_bytes=_times(anon.get(numa), unit), file_bytes=_times(file.get(numa), unit))
        for numa in sorted(anon.keys() | file.keys())
    )
    return {"memory_numa": spread} if spread else {}


def _line(text: str, name: str) -> dict[int, int]:
    """By NUMA node, the pairs of the line "anon N0=17 N1=4" (v2) or "hierarchical_anon=21 N0=17 N1=4" (v1)."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0].partition("=")[0] == name:
            pairs = (word.partition("=") for word in words[1:])
            return {int(node.removeprefix("N")): int(number) for node, _, number in pairs}
    return {}


def _times(number: int | None, unit: int) -> int | None:
    return None if number is None else number * unit


SOURCE = Source(
    {"container": (Gauge("memory_numa"),)},
    _read,
    cost="moderate",
    gates={"container": Gate(60.0, (GREW,), PAUSE_S)},
)
