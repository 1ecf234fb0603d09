"""The source to copy: how often the node's CPUs switch from one task to another, from `/proc/stat`.

It is complete and it works, but it is not read: `services/metrics/registry.py` leaves out the module of this name.
docs/writing-a-source.md explains it line by line.
"""

from sublet.api.source import Gate, Host, Rate, Source, Target

_COUNTER = "context_switches"


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    """1. Raw values by name, as the kernel has them. What is not there is left out: absent is not zero."""
    stat = host.text("proc/stat") or ""
    # From the end: before it stands the line of all interrupts, which is far longer than the rest.
    line = stat.rfind("\nctxt ")
    return {_COUNTER: int(stat[line:].split(None, 2)[1])} if line >= 0 else {}


SOURCE = Source(
    # 2. Figures, for each kind of target, and how each is made of the raw values: here the counter's growth per second.
    {"node": (Rate("context_switches_per_s", of=_COUNTER),)},
    _read,
    # 3. What one reading costs, as `python -m bench.source_cost` measures it.
    cost="moderate",
    # 4. How old the figures may get. A source without a gate is read in every pass.
    gates={"node": Gate(4.0)},
)
