"""Source to copy: context switches per second of the node, from `/proc/stat`.

The source is complete and works, but it is not loaded: `services/metrics/registry.py` skips modules named `template`.
docs/writing-a-source.md explains it line by line.
"""

from sublet.api.source import Gate, Host, Rate, Source, Target

_COUNTER = "context_switches"


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    """1. Return the kernel's raw values by name. Leave a missing value out: absent is not zero."""
    stat = host.text("proc/stat") or ""
    # Search from the end: the interrupt line before it is far longer than the rest of the file.
    line = stat.rfind("\nctxt ")
    return {_COUNTER: int(stat[line:].split(None, 2)[1])} if line >= 0 else {}


SOURCE = Source(
    # 2. Figures by kind of target, and how each derives from the raw values. Here: growth of the counter per second.
    {"node": (Rate("context_switches_per_s", of=_COUNTER),)},
    _read,
    # 3. The cost of one reading, as measured by `python -m bench.source_cost`.
    cost="moderate",
    # 4. The greatest age of the figures in seconds. A source without a gate is read in every pass.
    gates={"node": Gate(4.0)},
)
